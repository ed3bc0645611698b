// A chart over time with its values as text, and as a table for screen readers.

import { useEffect, useRef, useState } from 'preact/hooks'
import { loadChart } from '../lazy-load.ts'
import type { Chart as Drawn, ChartData } from '../lazy/chart.ts'
import { formatClock } from '../lib/time.ts'
import { isDark, zone } from '../prefs.ts'

export interface Series {
  title: string
  /** A custom property of the style sheet, such as --ok. */
  color: string
  values: (number | null)[]
  fill?: boolean
  /** Draw the line across a few steps without values. */
  connect?: boolean
}

/** Something that happened, on the time axis. */
export interface Mark {
  at: number
  title: string
}

const none: Mark[] = []

export function Chart({ title, times, series, format, height = 120, unit, marks = none }: { marks?: Mark[]; title: string; times: number[]; series: Series[]; format: (n: number) => string; height?: number; unit?: string }) {
  const host = useRef<HTMLDivElement>(null)
  const drawn = useRef<Drawn | undefined>(undefined)
  const [hover, setHover] = useState<number | null>(null)
  const dark = isDark()
  const step = times.length > 1 ? times[1]! - times[0]! : 0
  const inRange = marks.filter((m) => m.at >= (times[0] ?? 0) && m.at <= (times[times.length - 1] ?? 0) + step)
  const utc = zone.value === 'utc'
  const data = (): ChartData => {
    const style = getComputedStyle(document.documentElement)
    return { times: times.map((t) => t / 1000), marks: inRange.map((m) => m.at / 1000), lines: series.map((s) => ({ title: s.title, color: style.getPropertyValue(s.color).trim() || '#888', values: s.values, ...(s.fill === false ? { fill: false } : {}), ...(s.connect ? { connect: true } : {}) })) }
  }
  const latest = useRef(data)
  latest.current = data
  useEffect(() => {
    let gone = false
    const resize = new ResizeObserver(() => host.current && drawn.current?.resize(host.current.clientWidth))
    loadChart().then((m) => {
      if (gone || !host.current) return
      const color = (name: string): string => getComputedStyle(host.current!).getPropertyValue(name).trim()
      drawn.current = m.draw(host.current, host.current.clientWidth, latest.current(), { height, colors: { axis: color('--muted'), grid: color('--line'), mark: color('--accent') }, format, utc, sync: 'time', onHover: setHover })
      resize.observe(host.current)
    }, () => undefined)
    return () => {
      gone = true
      resize.disconnect()
      drawn.current?.destroy()
      drawn.current = undefined
      host.current?.replaceChildren()
    }
  }, [dark, utc, series.length])
  useEffect(() => drawn.current?.update(data()), [times, series, marks])
  const at = hover ?? lastIndex(series)
  const empty = series.every((s) => s.values.every((v) => v === null))
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}{unit && <span class="muted"> {unit}</span>}
            {inRange.length > 0 && <span class="muted chart-mark" title={inRange.map((m) => `${formatClock(m.at, zone.value)} ${m.title}`).join('\n')}><i />{inRange.length === 1 ? 'deployment' : `${inRange.length} deployments`}</span>}
        </span>
        <span class="chart-legend">
          {series.map((s) => <span key={s.title}><i style={{ background: `var(${s.color})` }} />{series.length > 1 && <span class="muted">{s.title}</span>}<b class="num">{at === undefined || s.values[at] === null || s.values[at] === undefined ? '–' : format(s.values[at])}</b></span>)}
          {hover !== null && times[hover] !== undefined && <span class="muted num">{formatClock(times[hover], zone.value)}</span>}
        </span>
      </figcaption>
      <div ref={host} class="chart-body" style={{ height: `${height}px` }} aria-hidden="true" />
      {empty && <span class="chart-empty muted">no data yet</span>}
      <table class="offscreen" aria-label={title}>
        <thead><tr><th scope="col">Time</th>{series.map((s) => <th key={s.title} scope="col">{s.title}</th>)}</tr></thead>
        <tbody>{times.filter((_, i) => i % Math.max(1, Math.ceil(times.length / 12)) === 0).map((t) => { const i = times.indexOf(t); return <tr key={t}><td>{formatClock(t, zone.value)}</td>{series.map((s) => <td key={s.title}>{s.values[i] ?? 'none'}</td>)}</tr> })}</tbody>
      </table>
    </figure>
  )
}

function lastIndex(series: Series[]): number | undefined {
  const n = series[0]?.values.length ?? 0
  for (let i = n - 1; i >= Math.max(0, n - 4); i--) if (series.some((s) => s.values[i] !== null)) return i
  return n > 0 ? n - 1 : undefined
}
