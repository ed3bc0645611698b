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

addEventListener('popstate', () => {
  place.value = here()
})

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
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  const before = place.peek().path
  place.value = here()
  if (!replace && before !== place.peek().path) {
    scrollTo(0, 0)
    requestAnimationFrame(() => document.getElementById('main')?.focus({ preventScroll: true }))
  }
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
