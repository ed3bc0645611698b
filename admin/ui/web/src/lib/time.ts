// Times and durations as text. All functions are pure: the caller passes the current time.

export type Zone = 'local' | 'utc'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Milliseconds since 1970 of a time of the API; undefined if there is none. */
export function parseTime(text: string | number | null | undefined): number | undefined {
  if (text === null || text === undefined || text === '') return undefined
  if (typeof text === 'number') return text
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

/** Milliseconds of a duration of the API, such as PT1.5S; undefined if there is none. */
export function parseISODuration(text: string | undefined): number | undefined {
  if (text === 'P0D') return 0
  const m = /^PT(\d+(?:\.\d+)?)S$/.exec(text ?? '')
  return m ? Number(m[1]) * second : undefined
}

/** A duration in at most two units: 1.2s, 3m 20s, 2d 4h. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  const sign = ms < 0 ? '−' : ''
  ms = Math.abs(ms)
  if (ms < 1) return ms === 0 ? '0ms' : `${sign}<1ms`
  if (ms < second) return `${sign}${Math.round(ms)}ms`
  if (ms < 10 * second) return `${sign}${trim((ms / second).toFixed(2))}s`
  if (ms < minute) return `${sign}${trim((ms / second).toFixed(1))}s`
  if (ms < hour) return sign + two(ms, minute, 'm', second, 's')
  if (ms < day) return sign + two(ms, hour, 'h', minute, 'm')
  return sign + two(ms, day, 'd', hour, 'h')
}

function trim(digits: string): string {
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits
}

function two(ms: number, big: number, bigName: string, small: number, smallName: string): string {
  let whole = Math.floor(ms / big)
  let rest = Math.round((ms - whole * big) / small)
  if (rest * small >= big) {
    whole++
    rest = 0
  }
  return rest === 0 ? `${whole}${bigName}` : `${whole}${bigName} ${rest}${smallName}`
}

/** A distance in one unit: 24s, 3m, 2h, 5d. */
export function formatDistance(ms: number): string {
  ms = Math.abs(ms)
  if (ms < minute) return `${Math.floor(ms / second)}s`
  if (ms < hour) return `${Math.floor(ms / minute)}m`
  if (ms < day) return `${Math.floor(ms / hour)}h`
  return `${Math.floor(ms / day)}d`
}

/** The distance of a time from now: 24s ago, in 3m, now. Future times have two units: in 1h 58m. */
export function formatRelative(at: number, now: number): string {
  const distance = at - now
  if (Math.abs(distance) < second) return 'now'
  return distance < 0 ? `${formatDistance(distance)} ago` : `in ${distance < minute ? formatDistance(distance) : formatDuration(Math.floor(distance / second) * second)}`
}

/** Date and time to the millisecond: 2026-11-22 23:35:29.123. */
export function formatAbsolute(at: number, zone: Zone, withMillis = true): string {
  const d = new Date(at)
  if (Number.isNaN(d.getTime())) return '–'
  const pad = (n: number, width = 2): string => String(n).padStart(width, '0')
  const utc = zone === 'utc'
  const date = utc
    ? `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())}`
    : `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`
  const time = utc
    ? `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}`
    : `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`
  const millis = withMillis ? `.${pad(utc ? d.getUTCMilliseconds() : d.getMilliseconds(), 3)}` : ''
  return `${date} ${time}${millis}${utc ? ' UTC' : ''}`
}

/** The time of day, for an axis. */
export function formatClock(at: number, zone: Zone, withSeconds = true): string {
  return formatAbsolute(at, zone, false).slice(11, withSeconds ? 19 : 16)
}

const unitsOf: Record<string, number> = {
  ms: 1, millis: 1, s: second, sec: second, second: second, seconds: second,
  m: minute, min: minute, minute: minute, minutes: minute, h: hour, hr: hour, hour: hour, hours: hour,
  d: day, day: day, days: day, w: 7 * day, week: 7 * day, weeks: 7 * day,
}

/** Milliseconds of a duration such as 10m or 1h 30m; undefined if it is not one. */
export function parseDuration(text: string): number | undefined {
  let total = 0
  let rest = text.trim().toLowerCase()
  if (rest === '') return undefined
  while (rest !== '') {
    const m = /^(\d+(?:\.\d+)?)\s*([a-z]+)\s*/.exec(rest)
    const unit = m ? unitsOf[m[2]!] : undefined
    if (!m || unit === undefined) return undefined
    total += Number(m[1]) * unit
    rest = rest.slice(m[0].length)
  }
  return total
}

interface Timed {
  created_at?: string
  scheduled_start_at?: string
  running_at?: string
  completed_at?: string
}

/** When an invocation could have started. */
export const dueAt = (i: Timed): number => Math.max(parseTime(i.created_at) ?? 0, parseTime(i.scheduled_start_at) ?? 0)

/** The average waits and runs of invocations in milliseconds; run is undefined if none of them has completed. */
export function averagesOf(list: readonly Timed[]): { wait: number; run: number | undefined } | undefined {
  const started = list.filter((i) => i.running_at !== undefined)
  const mean = (values: number[]): number | undefined => (values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0) / values.length)
  const wait = mean(started.map((i) => Math.max(0, parseTime(i.running_at)! - dueAt(i))))
  if (wait === undefined) return undefined
  return { wait, run: mean(started.flatMap((i) => (i.completed_at === undefined ? [] : [parseTime(i.completed_at)! - parseTime(i.running_at)!]))) }
}
