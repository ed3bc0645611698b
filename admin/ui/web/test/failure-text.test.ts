import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failureText } from '../src/lib/failure-text.ts'

test('the lines of an error that are no stack trace are shown', () => {
  const mismatch = '[570 Journal Mismatch] Found a mismatch\nThis typically happens.\n- Difference:\n   name: charge != reserve\n'
  assert.deepEqual(failureText(mismatch), { message: '[570 Journal Mismatch] Found a mismatch', details: 'This typically happens.\n- Difference:\n   name: charge != reserve', trace: '' })
  assert.deepEqual(failureText('out of stock'), { message: 'out of stock', details: '', trace: '' })
})

test('stack traces of each language are folded', () => {
  for (const trace of [
    '    at place (file:///orders.ts:7:13)\n    at async run (x.js:1:1)',
    '\tat Orders.place(Orders.java:14)\nCaused by: java.io.IOException',
    'Traceback (most recent call last):\n  File "/orders.py", line 7, in charge\nValueError: no',
    'goroutine 12 [running]:\nmain.place()',
    'stack backtrace:\n   0: 0x55 - orders::place',
  ]) {
    assert.deepEqual(failureText(`failed\nwhile it paid\n${trace}`), { message: 'failed', details: 'while it paid', trace })
  }
})

test('a long text without a trace is folded', () => {
  const lines = Array.from({ length: 20 }, (_, i) => `line ${i}`).join('\n')
  assert.deepEqual(failureText(`failed\n${lines}`), { message: 'failed', details: '', trace: lines })
})
