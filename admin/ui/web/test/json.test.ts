import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Digits, parseExact, reformat, withMember } from '../src/lib/json.ts'

const samples = [
  '{}', '[]', '0', '"a"', 'null', '[[],{},[{}]]', '{"a":1,"b":[1,2,{"c":"x, y: {z}"}],"d":{}}', String.raw`{"quo\"te\\":"} ] , : \\","\u00e9":"\n"}`,
]

test('reformatted JSON is what JSON.stringify writes', () => {
  for (const s of samples) {
    assert.equal(reformat(s, 2), JSON.stringify(JSON.parse(s), null, 2).replace('é', () => String.raw`\u00e9`))
    assert.equal(reformat(reformat(s, 2), 0), s)
  }
})

test('reformatted JSON keeps the digits of numbers and names that occur twice', () => {
  const text = '{"id":12345678901234567890,"price":1.10,"tiny":1e-400,"id":2,"__proto__":{"x":1}}'
  assert.equal(reformat(reformat(text, 2), 0), text)
})

test('numbers are read as they are written', () => {
  const { id, price, n } = parseExact('{"id":12345678901234567890,"price":1.10,"n":7}') as Record<string, unknown>
  assert.deepEqual([String(id), String(price), n], ['12345678901234567890', '1.10', 7])
  assert.ok(id instanceof Digits)
})

test('one member changes, the others keep their text', () => {
  const text = '{"id": 12345678901234567890, "nested": {"id": 98765432109876543210, "list": [1.0, {}]}, "last": true}'
  assert.equal(reformat(withMember(text, 'last', 'false'), 0), '{"id":12345678901234567890,"nested":{"id":98765432109876543210,"list":[1.0,{}]},"last":false}')
  assert.equal(reformat(withMember(text, 'id', undefined), 0), '{"nested":{"id":98765432109876543210,"list":[1.0,{}]},"last":true}')
  assert.equal(reformat(withMember(text, 'a "new" one', '"$&"'), 0), '{"id":12345678901234567890,"nested":{"id":98765432109876543210,"list":[1.0,{}]},"last":true,"a \\"new\\" one":"$&"}')
  assert.equal(withMember('{}', 'a', '1'), '{\n  "a": 1\n}')
  assert.equal(withMember('{"a":1}', 'a', undefined), '{}')
  assert.equal(reformat(withMember('{"a":"x","b":[":",","]}', 'a', '[]'), 0), '{"a":[],"b":[":",","]}')
})
