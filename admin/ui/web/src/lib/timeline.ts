// The layout of a timeline as data: a scale from times to fractions of the width, with idle time
// collapsed, and the bars of steps.

export interface Span {
  from: number
  to: number
}

/** A part of the scale: times from..to are drawn between a and b (0 to 1). */
export interface Segment extends Span {
  a: number
  b: number
  idle: boolean
}

export interface Scale {
  from: number
  to: number
  segments: Segment[]
}

export interface ScaleOptions {
  /** Shorter idle times are drawn to scale. */
  idleAfter?: number
  /** A gap is idle only if it is at least this part of the whole. */
  idleShare?: number
  /** Width of a collapsed gap. */
  idleWidth?: number
  collapse?: boolean
}

/**
 * Makes a scale over all marks. Nothing happens in a gap between two adjacent marks; long gaps are drawn narrow.
 */
export function makeScale(marks: readonly number[], options: ScaleOptions = {}): Scale {
  const { idleAfter = 2000, idleShare = 0.12, idleWidth = 0.06, collapse = true } = options
  const times = [...new Set(marks.filter(Number.isFinite))].sort((x, y) => x - y)
  if (times.length === 0) return { from: 0, to: 1, segments: [{ from: 0, to: 1, a: 0, b: 1, idle: false }] }
  const from = times[0]!
  const to = Math.max(times[times.length - 1]!, from + 1)
  const total = to - from
  const gaps: Segment[] = []
  if (collapse) {
    for (let i = 1; i < times.length; i++) {
      const gap = times[i]! - times[i - 1]!
      if (gap >= idleAfter && gap >= total * idleShare) gaps.push({ from: times[i - 1]!, to: times[i]!, a: 0, b: 0, idle: true })
    }
  }
  const busy = total - gaps.reduce((sum, g) => sum + (g.to - g.from), 0)
  // The whole time is idle, so there is nothing to assign the width to.
  if (gaps.length === 0 || busy <= 0) return { from, to, segments: [{ from, to, a: 0, b: 1, idle: false }] }
  const narrow = Math.min(idleWidth, 0.5 / gaps.length)
  const perMs = (1 - narrow * gaps.length) / busy
  const segments: Segment[] = []
  let at = from
  let x = 0
  const push = (end: number, width: number, idle: boolean): void => {
    if (end <= at) return
    segments.push({ from: at, to: end, a: x, b: x + width, idle })
    at = end
    x += width
  }
  for (const gap of gaps) {
    push(gap.from, (gap.from - at) * perMs, false)
    push(gap.to, narrow, true)
  }
  push(to, (to - at) * perMs, false)
  segments[segments.length - 1]!.b = 1
  return { from, to, segments }
}

/** Where a time is, from 0 to 1; times outside are at the border. */
export function position(scale: Scale, time: number): number {
  if (time <= scale.from) return 0
  if (time >= scale.to) return 1
  for (const s of scale.segments) {
    if (time <= s.to) return s.a + ((time - s.from) / (s.to - s.from)) * (s.b - s.a)
  }
  return 1
}

/** The time at a place: the inverse of position. */
export function timeAt(scale: Scale, x: number): number {
  for (const s of scale.segments) {
    if (x <= s.b) return s.from + (s.b === s.a ? 0 : ((x - s.a) / (s.b - s.a)) * (s.to - s.from))
  }
  return scale.to
}

/** Steps of an axis, in milliseconds. */
const stepSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000]

/** Labels of idle time; gaps that touch have one. */
export function idleLabels(scale: Scale): { a: number; b: number; duration: number }[] {
  const out: { a: number; b: number; duration: number }[] = []
  for (const s of scale.segments) {
    if (!s.idle) continue
    const last = out.at(-1)
    if (last && s.a - last.b < 0.03) {
      last.b = s.b
      last.duration += s.to - s.from
    } else out.push({ a: s.a, b: s.b, duration: s.to - s.from })
  }
  return out
}

/** Ticks of the axis as offsets from the start, at round numbers, at least `distance` apart. */
export function ticks(scale: Scale, distance = 0.14): { x: number; offset: number }[] {
  const out: { x: number; offset: number }[] = []
  let last = -1
  for (const s of scale.segments) {
    if (s.idle) {
      last = Math.max(last, s.b - distance / 2)
      continue
    }
    const perX = (s.to - s.from) / (s.b - s.a || 1)
    const size = stepSizes.find((n) => n >= perX * distance) ?? 86_400_000 * Math.ceil((perX * distance) / 86_400_000)
    const first = Math.ceil((s.from - scale.from) / size) * size
    for (let offset = first; scale.from + offset <= s.to; offset += size) {
      const x = position(scale, scale.from + offset)
      if (x - last >= distance * 0.85 && x <= 0.97) {
        out.push({ x, offset })
        last = x
      }
    }
  }
  return out
}

/** A part of the whole time: moved by a share of what is shown, and wider by a factor. Undefined if it is the whole. */
export function zoomed(shown: Span, whole: Span, move: number, factor: number): Span | undefined {
  const length = Math.max(1, (shown.to - shown.from) * factor)
  if (length >= whole.to - whole.from) return undefined
  const middle = (shown.from + shown.to) / 2 + move * (shown.to - shown.from)
  const from = Math.min(Math.max(whole.from, middle - length / 2), whole.to - length)
  return { from, to: from + length }
}

export interface Bar {
  x: number
  width: number
}

/** The bar of a span. */
export function bar(scale: Scale, from: number, to: number): Bar {
  const x = position(scale, from)
  return { x, width: Math.max(0, position(scale, to) - x) }
}

/** Phases of an invocation that follow from its record. */
export interface Phase extends Span {
  kind: 'scheduled' | 'queued' | 'active' | 'done'
}

export interface Life {
  created: number
  scheduledStart?: number | undefined
  running?: number | undefined
  completed?: number | undefined
}

export function phases(life: Life, now: number): Phase[] {
  const end = life.completed ?? now
  const out: Phase[] = []
  let at = life.created
  const push = (kind: Phase['kind'], to: number): void => {
    if (to > at) out.push({ kind, from: at, to })
    at = Math.max(at, to)
  }
  if (life.scheduledStart !== undefined) push('scheduled', Math.min(life.scheduledStart, end))
  push('queued', Math.min(life.running ?? end, end))
  if (life.running !== undefined) push('active', end)
  return out
}
