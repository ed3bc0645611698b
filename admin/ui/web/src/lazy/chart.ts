// Charts over time, drawn by uPlot.

import uPlot from 'uplot'
import { axisWidth } from '../lib/axis.ts'
import { isolated, longGaps } from '../lib/gaps.ts'

export interface Line {
  title: string
  color: string
  values: (number | null)[]
  fill?: boolean
  connect?: boolean
}

export interface ChartData {
  times: number[] // seconds
  /** Times of vertical lines. */
  marks: number[]
  lines: Line[]
}

export interface ChartOptions {
  height: number
  colors: { axis: string; grid: string; mark: string }
  format: (n: number) => string
  utc: boolean
  sync: string
  onHover: (index: number | null) => void
}

export interface Chart {
  update: (data: ChartData) => void
  resize: (width: number) => void
  destroy: () => void
}

/** The width of a step in pixels of the canvas. */
function stepWidth(u: uPlot): number {
  const [first, second] = u.data[0]
  return first === undefined || second === undefined ? 0 : u.valToPos(second, 'x', true) - u.valToPos(first, 'x', true)
}

export function draw(element: HTMLElement, width: number, data: ChartData, o: ChartOptions): Chart {
  const font = '11px system-ui, sans-serif'
  let marks = data.marks
  const drawMarks = (u: uPlot): void => {
    const { ctx, bbox } = u
    ctx.save()
    ctx.strokeStyle = o.colors.mark
    ctx.lineWidth = devicePixelRatio
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio])
    for (const at of marks) {
      const x = Math.round(Math.min(u.valToPos(at, 'x', true), bbox.left + bbox.width)) + 0.5
      ctx.beginPath()
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bbox.top + bbox.height)
      ctx.stroke()
    }
    ctx.restore()
  }
  const axis = { stroke: o.colors.axis, font, grid: { stroke: o.colors.grid, width: 1 }, ticks: { show: false } }
  const plot = new uPlot({
    width,
    height: o.height,
    legend: { show: false },
    padding: [8, 16, 0, 0],
    cursor: { y: false, points: { size: 6 }, sync: { key: o.sync }, drag: { setScale: false, x: false, y: false } },
    ...(o.utc ? { tzDate: (ts: number) => uPlot.tzDate(new Date(ts * 1000), 'UTC') } : {}),
    scales: { y: { range: (_u, _min, max) => [0, max <= 0 ? 1 : max * 1.12] } },
    axes: [
      { ...axis, grid: { show: false }, space: 70, size: 26, values: [[3600, '{HH}:{mm}', null, null, null, null, null, null, 1], [60, '{HH}:{mm}', null, null, null, null, null, null, 1], [1, '{HH}:{mm}:{ss}', null, null, null, null, null, null, 1]] },
      { ...axis, size: (_u, labels) => axisWidth(labels), space: 32, values: (_u, list) => list.map((v) => o.format(v)) },
    ],
    series: [{}, ...data.lines.map((l) => ({
      label: l.title, stroke: l.color, width: 1.5, points: { show: false, size: 5, fill: l.color, filter: (u: uPlot, i: number) => isolated(u.data[i] as (number | null)[], l.connect === true) }, ...(l.connect ? { gaps: (u: uPlot, _series: number, _from: number, _to: number, gaps: [number, number][]) => longGaps(gaps, stepWidth(u)) } : {}), ...(l.fill === false ? {} : { fill: `color-mix(in srgb, ${l.color} 12%, transparent)` }),
    }))],
    hooks: { drawAxes: [drawMarks], setCursor: [(u) => o.onHover(u.cursor.idx ?? null)] },
  }, [data.times, ...data.lines.map((l) => l.values)] as uPlot.AlignedData, element)
  return {
    update: (d) => {
      marks = d.marks
      plot.setData([d.times, ...d.lines.map((l) => l.values)] as uPlot.AlignedData)
    },
    resize: (w) => plot.setSize({ width: w, height: o.height }),
    destroy: () => plot.destroy(),
  }
}
