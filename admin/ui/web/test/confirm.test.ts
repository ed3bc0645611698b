import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchConfirmation } from '../src/lib/confirm.ts'

test('a large destructive batch is confirmed by typing its number', () => {
  assert.equal(batchConfirmation('kill', { danger: true, count: 101, filtered: false }), '101')
  assert.equal(batchConfirmation('purge', { danger: true, count: 102154, filtered: false }), '102154')
})

test('a destructive batch of all that match is confirmed by typing their number', () => {
  assert.equal(batchConfirmation('purge', { danger: true, count: 2, filtered: true }), '2')
  assert.equal(batchConfirmation('kill', { danger: true, filtered: true }), 'kill')
})

test('a click confirms a few selected invocations, and what can be undone', () => {
  assert.equal(batchConfirmation('kill', { danger: true, count: 100, filtered: false }), undefined)
  assert.equal(batchConfirmation('kill', { danger: true, count: 1, filtered: true }), undefined)
  assert.equal(batchConfirmation('pause', { danger: false, count: 102154, filtered: true }), undefined)
})
