import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noteServerTime, serverNow } from '../src/lib/clock.ts'

const offset = (): number => serverNow() - Date.now()
const httpDate = (ms: number): string => new Date(ms).toUTCString()

test('the time of the server is followed if it differs much, and only then', (t) => {
  const now = Date.now()
  t.mock.method(Date, 'now', () => now)
  noteServerTime(httpDate(now), now, now + 20)
  assert.equal(offset(), 0)
  noteServerTime(httpDate(now - 3_600_000), now, now + 20)
  assert.ok(Math.abs(offset() + 3_600_000) < 1100, `${offset()}`)
  const learned = offset()
  noteServerTime(httpDate(now - 3_600_000 + 900), now, now + 20)
  assert.equal(offset(), learned, 'small differences do not let times jump')
  noteServerTime(null, now, now + 20)
  noteServerTime('soon', now, now + 20)
  noteServerTime(httpDate(now + 9_000_000), now, now + 5000)
  assert.equal(offset(), learned, 'a slow response says little')
  noteServerTime(httpDate(now), now, now + 20)
  assert.equal(offset(), 0)
})
