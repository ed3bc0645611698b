import { test } from 'node:test'
import assert from 'node:assert/strict'
import { credentials, fromAddress, may, refusalOf, setToken, token } from '../src/session.ts'

test('a token in the address', () => {
  assert.equal(fromAddress('#token=plt_abcdefghijklmnop_qrstuvwx'), 'plt_abcdefghijklmnop_qrstuvwx')
  for (const hash of ['', '#', '#token=', '#token=short', '#other=plt_abcdefghijklmnop_qrstuvwx', '#token=plt_abcdefghijklmnop%0aX:y', '#token=plt_abcdefghijklmnop\nx']) {
    assert.equal(fromAddress(hash), undefined, hash)
  }
})

test('credentials are sent only if there are any', () => {
  assert.deepEqual(credentials(), {})
  setToken('plt_a')
  assert.deepEqual(credentials(), { authorization: 'Bearer plt_a' })
  setToken('')
  assert.equal(token.value, '')
  assert.deepEqual(credentials(), {})
})

test('permissions', () => {
  const viewer = { name: 'ci', roles: ['viewer'], permissions: ['view'], token_required: true }
  assert.equal(may('operate', undefined), true, 'the server decides until it is known')
  assert.equal(may('view', viewer), true)
  assert.equal(may('operate', viewer), false)
  assert.match(refusalOf('operate', viewer) ?? '', /“ci”.*role operator/)
  assert.equal(refusalOf('view', viewer), undefined)
})
