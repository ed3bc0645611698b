import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFilters, parseFilters, parseFilterText, presetOf, presets, toggleFilter, withFilter, type Filter } from '../src/lib/filters.ts'

const round = (filters: Filter[], oldestFirst = false) => parseFilters(new URLSearchParams(formatFilters({ filters, oldestFirst }).toString()))

test('filters survive the address, whatever their values', () => {
  for (const value of [`it's "quoted"`, '<script>', '🚀', 'עברית', 'a&b=c#d%20e+f', ' x ']) {
    assert.deepEqual(round([{ name: 'key', value }, { name: 'status', value: 'paused' }], true), { filters: [{ name: 'status', value: 'paused' }, { name: 'key', value }], oldestFirst: true })
  }
})

test('parameters that are no filters, repeats and second values are ignored', () => {
  const { filters } = parseFilters(new URLSearchParams('cursor=abc&status=paused&status=running&status=paused&result=failure&result=success&nonsense=1'))
  assert.deepEqual(filters.map((f) => `${f.name}=${f.value}`), ['status=paused', 'status=running', 'result=failure', 'result=success'])
})

test('a filter with one value is replaced, one with several is added', () => {
  const start: Filter[] = [{ name: 'error_code', value: 'RT0007' }, { name: 'status', value: 'paused' }]
  assert.deepEqual(withFilter(start, { name: 'error_code', value: '500' }).filter((f) => f.name === 'error_code'), [{ name: 'error_code', value: '500' }])
  const both = toggleFilter(start, { name: 'status', value: 'running' })
  assert.equal(both.filter((f) => f.name === 'status').length, 2)
  assert.deepEqual(toggleFilter(both, { name: 'status', value: 'running' }), start)
})

test('a status replaces results and a result replaces statuses', () => {
  const paused: Filter[] = [{ name: 'service', value: 'A' }, { name: 'status', value: 'paused' }]
  const failed = toggleFilter(paused, { name: 'result', value: 'failure' })
  assert.deepEqual(failed, [{ name: 'service', value: 'A' }, { name: 'result', value: 'failure' }])
  assert.equal(toggleFilter(failed, { name: 'result', value: 'killed' }).length, 3)
  assert.deepEqual(toggleFilter(failed, { name: 'status', value: 'paused' }), paused)
})

test('the order survives the address', () => {
  const state = { filters: [], oldestFirst: true, byModified: true }
  assert.equal(formatFilters(state).toString(), 'sort=modified&oldest_first=true')
  assert.deepEqual(parseFilters(formatFilters(state)), state)
  assert.equal(presetOf({ filters: [], oldestFirst: false, byModified: true }), undefined)
})

test('presets are recognised in any order', () => {
  for (const p of presets) assert.equal(presetOf({ filters: [...p.filters].reverse(), oldestFirst: p.oldestFirst })?.id, p.id)
  assert.equal(presetOf({ filters: [{ name: 'key', value: 'x' }], oldestFirst: false }), undefined)
})

test('text becomes a filter', () => {
  const known = ['Greeter']
  assert.deepEqual(parseFilterText('service:Greeter', known), { name: 'service', value: 'Greeter' })
  assert.deepEqual(parseFilterText(' key = a=b:c ', known), { name: 'key', value: 'a=b:c' })
  assert.deepEqual(parseFilterText('paused', known), { name: 'status', value: 'paused' })
  assert.deepEqual(parseFilterText('Greeter', known), { name: 'service', value: 'Greeter' })
  assert.deepEqual(parseFilterText('dp_10352hPdI4IuQIIyOV55e8f', known), { name: 'deployment', value: 'dp_10352hPdI4IuQIIyOV55e8f' })
  assert.equal(parseFilterText('order-17', known), undefined)
})
