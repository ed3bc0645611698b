// The address of the page as a signal, and navigation below /ui/.

import { computed, signal } from '@preact/signals'

export const base = '/ui'

interface Place {
  path: string
  search: string
}

function here(): Place {
  const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length) || '/' : '/'
  return { path, search: location.search }
}

export const place = signal<Place>(here())
export const query = computed(() => new URLSearchParams(place.value.search))

// The part of the page that scrolls is not the window, whose position the browser would restore.
history.scrollRestoration = 'manual'
const scroller = (): HTMLElement | null => document.getElementById('main')

interface Visited {
  /** The entry before is a page of the UI. */
  back?: boolean
  /** How far the page was scrolled when it was left. */
  top?: number
}
const visited = (): Visited => (history.state as Visited | null) ?? {}

/** Whether the browser's back button leads to a page of the UI. */
export const cameFromHere = (): boolean => visited().back === true

addEventListener('popstate', () => {
  place.value = here()
  scrollBack(visited().top ?? 0)
})

/** Scrolls once the page is long enough, or gives up after this many frames. */
function scrollBack(top: number, frames = 60): void {
  const at = location.href
  requestAnimationFrame(() => {
    if (location.href !== at) return
    scroller()?.scrollTo(0, top)
    if (frames > 0 && (scroller()?.scrollTop ?? top) < top - 1) scrollBack(top, frames - 1)
  })
}

/** The address of a page below /ui. */
export function href(path: string, params?: URLSearchParams | Record<string, string | undefined>): string {
  let text = ''
  if (params) {
    const q = params instanceof URLSearchParams ? params : new URLSearchParams(Object.entries(params).filter((e): e is [string, string] => e[1] !== undefined && e[1] !== ''))
    text = q.toString()
  }
  return base + path + (text === '' ? '' : `?${text}`)
}

/** A segment of a path. */
export const segment = encodeURIComponent

export function navigate(to: string, replace = false): void {
  if (replace) history.replaceState(history.state, '', to)
  else {
    history.replaceState({ ...visited(), top: scroller()?.scrollTop ?? 0 }, '')
    history.pushState({ back: true }, '', to)
  }
  const before = place.peek()
  place.value = here()
  if (replace) return
  const { path, search } = place.peek()
  // Another page of the same list begins at its top; its filters are there anyway.
  if (before.path !== path || /[?&](cursor|runs|before)=/.test(search)) scroller()?.scrollTo(0, 0)
  if (before.path !== path) requestAnimationFrame(() => scroller()?.focus({ preventScroll: true }))
}

/** Changes parameters of the address, without another entry in the history. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const q = new URLSearchParams(place.peek().search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') q.delete(name)
    else q.set(name, value)
  }
  navigate(href(place.peek().path, q), true)
}

/** Links within the UI change the page without loading it. */
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const a = (event.target as Element | null)?.closest?.('a')
  if (!a || a.target || a.hasAttribute('download') || a.origin !== location.origin || !a.pathname.startsWith(`${base}/`)) return
  event.preventDefault()
  navigate(a.pathname + a.search)
})

export interface Match {
  [name: string]: string
}

/** Matches a path with a pattern such as /services/:name. */
export function match(pattern: string, path: string): Match | undefined {
  const want = pattern.split('/').filter(Boolean)
  const have = path.split('/').slice(1)
  // A slash at the end is ignored, except before an empty last parameter: objects can have an empty key.
  if (have.at(-1) === '' && have.length !== want.length) have.pop()
  if (want.length !== have.length) return undefined
  const out: Match = {}
  for (const [i, part] of want.entries()) {
    const got = have[i]!
    if (part.startsWith(':')) {
      try {
        out[part.slice(1)] = decodeURIComponent(got)
      } catch {
        return undefined
      }
    } else if (part !== got) return undefined
  }
  return out
}
