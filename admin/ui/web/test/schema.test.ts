import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsOf, propertiesOf } from '../src/lib/schema.ts'

test('simple properties of an object have a form', () => {
  const schema = {
    $ref: '#/$defs/Order',
    $defs: {
      Order: {
        type: 'object', required: ['item'],
        properties: { item: { type: 'string' }, amount: { type: ['integer', 'null'] }, gift: { type: 'boolean' }, size: { $ref: '#/$defs/Size' }, notes: { type: 'array' } },
      },
      Size: { enum: ['S', 'L'] },
    },
  }
  assert.deepEqual(fieldsOf(schema).map((f) => [f.name, f.kind, f.required]), [['item', 'text', true], ['amount', 'number', false], ['gift', 'boolean', false], ['size', 'choice', false]])
  assert.deepEqual(fieldsOf({ type: 'string' }), [])
  assert.deepEqual(fieldsOf(undefined), [])
})

test('a form keeps what it does not show', () => {
  assert.equal(String(propertiesOf('{"a":12345678901234567890}')!.a), '12345678901234567890')
  assert.equal(propertiesOf('[1]'), undefined)
  assert.equal(propertiesOf('{'), undefined)
})
