import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseHeaders } from '../src/lib/headers.ts'

test('headers keep what follows the first colon', () => {
  assert.deepEqual(parseHeaders('authorization: Basic a:b\n\n x-next:  http://127.0.0.1:9080/p: q \nx-empty:'), {
    list: [['authorization', 'Basic a:b'], ['x-next', 'http://127.0.0.1:9080/p: q'], ['x-empty', '']],
  })
})

test('lines that are no headers are refused', () => {
  assert.equal(parseHeaders('a: b\nno colon').problem, 'Line 2 of the headers is not of the form name: value.')
  assert.equal(parseHeaders('two words: b').problem, 'Line 1 of the headers is not of the form name: value.')
  assert.equal(parseHeaders('a: 🚀').problem, 'Line 1 of the headers has characters that no header can have.')
})
