import { test } from 'node:test'
import assert from 'node:assert/strict'
import { findAwakeables, parseAwakeableFilters } from '../src/lib/awakeables.ts'
import { kindOfID } from '../src/lib/format.ts'

const id = 'sign_1ASNFZ4mrze8AESIzRFVmd4iZqrvM3e7_AAAAEQ'

test('filters come from the address, without empty and unknown ones', () => {
  assert.deepEqual(parseAwakeableFilters(new URLSearchParams('service=Payment&handler=&key=a%2Cb&cursor=x&status=running')), { service: 'Payment', key: 'a,b' })
})

test('a text looks for an awakeable, an invocation or a key', () => {
  assert.deepEqual(findAwakeables(` ${id} `, { service: 'Payment', key: 'k' }), { filters: { id } }, 'an id needs no other filter')
  assert.deepEqual(findAwakeables('inv_10352hPdI4IuQIIyOV55e8f', {}), { invocation: 'inv_10352hPdI4IuQIIyOV55e8f' })
  assert.deepEqual(findAwakeables('order 7', { service: 'Payment', id }), { filters: { service: 'Payment', key: 'order 7' } })
  assert.deepEqual(findAwakeables('', { service: 'Payment', key: 'k' }), { filters: { service: 'Payment' } })
})

test('ids of awakeables are recognised', () => {
  assert.equal(kindOfID(id), 'awakeable')
  assert.equal(kindOfID(`${id}==`), 'awakeable')
  for (const other of ['sign_1', id.slice(0, -1), `${id}x`, `${id}'`, 'sign_2ASNFZ4mrze8AESIzRFVmd4iZqrvM3e7_AAAAEQ']) assert.equal(kindOfID(other), undefined)
})
