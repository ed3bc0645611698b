// A list that renders only what is visible. Rows may have different heights, which are measured.

import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from 'preact/hooks'

interface Props {
  count: number
  keyOf: (i: number) => string
  /** Height of a row before it was measured. */
  estimate: number
  render: (i: number) => ComponentChildren
  class?: string
  /** Rows outside the visible part. */
  overscan?: number
  label?: string
  /** A row to bring into view when it changes. */
  scrollTo?: number | undefined
}

/** The element that scrolls. */
export const scroller = (): HTMLElement => document.getElementById('main') ?? document.documentElement

export function VirtualList({ count, keyOf, estimate, render, overscan = 12, scrollTo, ...rest }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const heights = useRef(new Map<string, number>())
  const [version, update] = useReducer((n: number) => n + 1, 0)
  const range = useRef({ first: 0, last: 40 })

  const offsets = useMemo(() => {
    const out = new Float64Array(count + 1)
    for (let i = 0; i < count; i++) out[i + 1] = out[i]! + (heights.current.get(keyOf(i)) ?? estimate)
    return out
  }, [count, keyOf, estimate, version])
  const known = useRef(offsets)
  known.current = offsets

  const observer = useMemo(() => new ResizeObserver((list) => {
    let changed = false
    for (const e of list) {
      const key = (e.target as HTMLElement).dataset.key!
      const height = e.borderBoxSize[0]!.blockSize
      if (height > 0 && Math.abs((heights.current.get(key) ?? estimate) - height) > 0.5) {
        heights.current.set(key, height)
        changed = true
      }
    }
    if (changed) update(undefined)
  }), [])
  useEffect(() => () => observer.disconnect(), [])

  const find = (y: number): number => {
    const o = known.current
    let lo = 0
    let hi = o.length - 1
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1
      if (o[mid]! <= y) lo = mid
      else hi = mid - 1
    }
    return lo
  }

  const measure = (): boolean => {
    if (!box.current) return false
    const outer = scroller()
    const top = outer.getBoundingClientRect().top - box.current.getBoundingClientRect().top
    const first = Math.max(0, find(top) - overscan)
    const last = find(top + outer.clientHeight) + overscan
    if (first === range.current.first && last === range.current.last) return false
    range.current = { first, last }
    return true
  }

  useLayoutEffect(() => {
    const outer = scroller()
    let frame = 0
    const moved = (): void => {
      if (frame) return
      frame = requestAnimationFrame(() => {
        frame = 0
        if (measure()) update(undefined)
      })
    }
    outer.addEventListener('scroll', moved, { passive: true })
    addEventListener('resize', moved)
    return () => {
      cancelAnimationFrame(frame)
      outer.removeEventListener('scroll', moved)
      removeEventListener('resize', moved)
    }
  }, [])
  useLayoutEffect(() => {
    if (measure()) update(undefined)
  })
  useEffect(() => {
    if (scrollTo === undefined || !box.current) return
    const outer = scroller()
    const boxTop = box.current.getBoundingClientRect().top - outer.getBoundingClientRect().top
    const at = known.current[scrollTo] ?? 0
    const margin = 120
    if (boxTop + at < margin) outer.scrollBy(0, boxTop + at - margin)
    else if (boxTop + at + estimate > outer.clientHeight - 24) outer.scrollBy(0, boxTop + at + estimate - outer.clientHeight + 24)
  }, [scrollTo])

  const first = Math.min(range.current.first, count)
  const last = Math.min(range.current.last, count)
  const rows = []
  for (let i = first; i < last; i++) {
    const key = keyOf(i)
    rows.push(<Row key={key} id={key} observer={observer}>{render(i)}</Row>)
  }
  return (
    <div class={`virtual ${rest.class ?? ''}`} ref={box} style={{ height: `${offsets[count]}px` }}>
      <div class="virtual-window" style={{ transform: `translateY(${offsets[first]}px)` }}>{rows}</div>
    </div>
  )
}

function Row({ id, observer, children }: { id: string; observer: ResizeObserver; children: ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const el = ref.current!
    observer.observe(el, { box: 'border-box' })
    return () => observer.unobserve(el)
  }, [])
  return <div ref={ref} data-key={id}>{children}</div>
}
