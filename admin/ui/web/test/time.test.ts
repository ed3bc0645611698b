import assert from 'node:assert/strict'
import { test } from 'node:test'
import { averagesOf, formatAbsolute, formatDuration, formatRelative, parseDuration, parseTime, parseISODuration } from '../src/lib/time.ts'
import { formatBytes, formatCompact, kindOfID, shellQuote } from '../src/lib/format.ts'

test('durations', () => {
  for (const [ms, text] of [[0, '0ms'], [0.4, '<1ms'], [12, '12ms'], [999, '999ms'], [1000, '1s'], [1234, '1.23s'], [59_949, '59.9s'], [60_000, '1m'], [200_000, '3m 20s'], [3_599_999, '60m'], [7_260_000, '2h 1m'], [187_200_000, '2d 4h'], [-1500, '−1.5s']] as const) {
    assert.equal(formatDuration(ms), text)
  }
  assert.equal(formatDuration(Number.NaN), '–')
})

test('relative times', () => {
  const now = Date.UTC(2026, 10, 22, 12)
  assert.equal(formatRelative(now - 400, now), 'now')
  assert.equal(formatRelative(now - 24_481, now), '24s ago')
  assert.equal(formatRelative(now + 3 * 3_600_000, now), 'in 3h')
  assert.equal(formatRelative(now + 7_130_500, now), 'in 1h 59m')
  assert.equal(formatRelative(now + 59_500, now), 'in 59s')
})

test('absolute times', () => {
  const at = parseTime('2026-11-22T23:35:29.123000000Z')!
  assert.equal(formatAbsolute(at, 'utc'), '2026-11-22 23:35:29.123 UTC')
  assert.equal(parseTime('nonsense'), undefined)
  assert.equal(parseTime(undefined), undefined)
})

test('durations that people type', () => {
  for (const [text, ms] of [['10m', 600_000], ['1h 30m', 5_400_000], ['1day', 86_400_000], ['1s 500ms', 1500], ['2 days', 172_800_000]] as const) assert.equal(parseDuration(text), ms)
  for (const text of ['', '10', 'm', '10x', '-1s']) assert.equal(parseDuration(text), undefined)
})

test('numbers, ids and quotes', () => {
  assert.equal(formatCompact(1204), '1.2k')
  assert.equal(formatCompact(34_000_000), '34M')
  assert.equal(formatBytes(1500), '1.5 KiB')
  assert.equal(kindOfID('inv_10352hPdI4IuQIIyOV55e8f'), 'invocation')
  assert.equal(kindOfID("inv_1' OR 1=1"), undefined)
  assert.equal(shellQuote('{"a": "it\'s"}'), `'{"a": "it'\\''s"}'`)
  assert.equal(shellQuote('http://127.0.0.1:8080/A/b'), 'http://127.0.0.1:8080/A/b')
})

test('durations of the API', () => {
  assert.equal(parseISODuration('PT1.25S'), 1250)
  assert.equal(parseISODuration('PT90S'), 90_000)
  assert.equal(parseISODuration('P0D'), 0)
  assert.equal(parseISODuration(undefined), undefined)
  assert.equal(parseISODuration('soon'), undefined)
})

test('average waits and runs', () => {
  const at = (ms: number): string => new Date(ms).toISOString()
  assert.equal(averagesOf([]), undefined)
  assert.equal(averagesOf([{ created_at: at(1000) }]), undefined)
  assert.deepEqual(averagesOf([{ created_at: at(1000), running_at: at(1400) }]), { wait: 400, run: undefined })
  assert.deepEqual(averagesOf([
    { created_at: at(1000), running_at: at(1400), completed_at: at(1500) },
    { created_at: at(1000), scheduled_start_at: at(9000), running_at: at(9000), completed_at: at(9300) }, // the delay is not a wait
    { created_at: at(2000) },
  ]), { wait: 200, run: 200 })
})
