import assert from 'node:assert/strict'
import { test } from 'node:test'
import { axisWidth } from '../src/lib/axis.ts'

test('long labels of an axis are not cut off', () => {
  assert.equal(axisWidth(null), 44)
  assert.equal(axisWidth(['0', '50']), 44)
  assert.equal(axisWidth(['0ms', '3m 20s']), 53)
})
