import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bar, idleLabels, makeScale, phases, position, ticks, timeAt, zoomed } from '../src/lib/timeline.ts'

test('a scale without idle time is linear', () => {
  const s = makeScale([1000, 1500, 2000])
  assert.equal(position(s, 1000), 0)
  assert.equal(position(s, 1500), 0.5)
  assert.equal(position(s, 2000), 1)
  assert.equal(position(s, 0), 0)
  assert.equal(position(s, 9999), 1)
})

test('idle time is collapsed, and the rest keeps its order and proportion', () => {
  const hour = 3_600_000
  const s = makeScale([0, 50, 100, 2 * hour, 2 * hour + 100])
  assert.equal(s.segments.filter((g) => g.idle).length, 1)
  const [a, b, c, d, e] = [0, 50, 100, 2 * hour, 2 * hour + 100].map((t) => position(s, t)) as [number, number, number, number, number]
  assert.ok(a < b && b < c && c < d && d < e)
  assert.ok(Math.abs((b - a) - (c - b)) < 1e-9)
  assert.ok(d - c < 0.1, 'two hours of sleep are narrow')
  assert.ok(Math.abs(e - 1) < 1e-9)
})

test('positions can be turned back into times', () => {
  const s = makeScale([0, 10, 60_000, 60_010, 200_000, 200_100])
  for (const t of [0, 5, 10, 30_000, 60_005, 100_000, 200_050, 200_100]) assert.ok(Math.abs(timeAt(s, position(s, t)) - t) < 1, String(t))
})

test('idle time is shown as it is on request, and when there is nothing else', () => {
  assert.equal(makeScale([0, 100, 3_600_000], { collapse: false }).segments.length, 1)
  assert.equal(makeScale([0, 3_600_000]).segments.length, 1)
  assert.deepEqual(makeScale([]).segments.length, 1)
  assert.equal(position(makeScale([5, 5]), 5), 0)
})

test('ticks are at round offsets and do not touch', () => {
  const s = makeScale([0, 20, 1300])
  const list = ticks(s)
  assert.ok(list.length >= 4)
  for (const [i, t] of list.entries()) {
    assert.equal(t.offset % 100, 0)
    if (i > 0) assert.ok(t.x - list[i - 1]!.x > 0.1)
  }
})

test('a bar never has a negative width', () => {
  const s = makeScale([0, 100])
  assert.deepEqual(bar(s, 80, 40), { x: 0.8, width: 0 })
  assert.deepEqual(bar(s, -50, 50), { x: 0, width: 0.5 })
})

test('phases of a life', () => {
  assert.deepEqual(phases({ created: 0, scheduledStart: 10, running: 15, completed: 40 }, 99).map((p) => [p.kind, p.from, p.to]), [['scheduled', 0, 10], ['queued', 10, 15], ['active', 15, 40]])
  assert.deepEqual(phases({ created: 0 }, 7).map((p) => p.kind), ['queued'])
  assert.deepEqual(phases({ created: 0, scheduledStart: 100 }, 7).map((p) => [p.kind, p.to]), [['scheduled', 7]])
})

test('a zoom stays within the whole time', () => {
  const whole = { from: 0, to: 1000 }
  assert.deepEqual(zoomed(whole, whole, 0, 0.5), { from: 250, to: 750 })
  assert.deepEqual(zoomed({ from: 250, to: 750 }, whole, -1, 1), { from: 0, to: 500 })
  assert.deepEqual(zoomed({ from: 250, to: 750 }, whole, 1, 1), { from: 500, to: 1000 })
  assert.equal(zoomed({ from: 250, to: 750 }, whole, 0, 2), undefined)
})

test('idle times that touch have one label', () => {
  const s = (from: number, to: number, a: number, b: number, idle: boolean) => ({ from, to, a, b, idle })
  const labels = idleLabels({ from: 0, to: 1000, segments: [s(0, 100, 0, 0.4, false), s(100, 400, 0.4, 0.46, true), s(400, 401, 0.46, 0.5, false), s(401, 700, 0.5, 0.56, true), s(700, 700.1, 0.56, 0.561, false), s(700.1, 1000.1, 0.561, 0.62, true)] })
  assert.deepEqual(labels.map((l) => [l.a, l.b, Math.round(l.duration)]), [[0.4, 0.46, 300], [0.5, 0.62, 599]])
})
