import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withQueueName } from '../src/lib/explain.ts'

test('an explanation names the queue by its scope and limit key, whatever they contain', () => {
  const summary = 'It waits: the queue vq_1A2b is paused.'
  assert.equal(withQueueName(summary, 'acme', 'eu/gold'), 'It waits: the queue of acme/eu/gold is paused.')
  for (const odd of ['$&', '$1$2', "$`$'", '$$']) assert.equal(withQueueName(summary, odd, undefined), `It waits: the queue of ${odd} is paused.`)
  assert.equal(withQueueName(summary, undefined, undefined), summary)
})
