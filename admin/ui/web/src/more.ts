// The part of the UI that is loaded after the first page.

import { toastError } from './ui/overlay.tsx'

export type More = typeof import('./pages/more.ts')
let loading: Promise<More> | undefined
let loaded: More | undefined

export const moreNow = (): More | undefined => loaded

/** Loads the other pages; they are fetched in advance once the first page is there. */
export function loadMore(): Promise<More> {
  loading ??= import('./pages/more.ts').then((m) => {
    loaded = m
    return m
  })
  loading.catch(() => {
    loading = undefined
  })
  return loading
}

/** Does something with the other part, immediately if it is there. */
export function withMore(run: (more: More) => void): void {
  if (loaded) run(loaded)
  else loadMore().then(run, (err: unknown) => toastError(err, 'A part of this page could not be loaded'))
}
