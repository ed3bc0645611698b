import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawnOver, isolated, longGaps } from '../src/lib/gaps.ts'

const nothing = (n: number): null[] => Array.from({ length: n }, () => null)

test('a value that no line reaches is a point', () => {
  assert.deepEqual(isolated([1, null, 2, 3, null], false), [0])
  assert.deepEqual(isolated([1, null, 2], true), [])
  assert.deepEqual(isolated([1, ...nothing(drawnOver - 1), 2, ...nothing(drawnOver), 3], true), [drawnOver * 2 + 1])
  assert.deepEqual(isolated([null, 5, undefined], true), [1])
})

test('long gaps are not drawn over', () => {
  assert.deepEqual(longGaps([[0, 10], [20, 20 + drawnOver * 10], [200, 500]], 10), [[200, 500]])
})
