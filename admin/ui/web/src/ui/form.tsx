// What forms in dialogs share.

import { useState } from 'preact/hooks'
import { Button } from './basic.tsx'

interface Submission {
  busy: boolean
  error: Error | undefined
  submit: (e: Event) => void
}

/** Sends a form; the dialog closes when that succeeds. */
export function useSubmission(close: () => void, run: () => Promise<void>): Submission {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  return {
    busy, error, submit: (e) => {
      e.preventDefault()
      if (busy) return
      setBusy(true)
      setError(undefined)
      run().then(close, (err: unknown) => {
        setError(err as Error)
        setBusy(false)
      })
    },
  }
}

export function FormButtons({ close, action, busy, disabled }: { close: () => void; action: string; busy: boolean; disabled?: boolean }) {
  return <><Button onClick={close}>Close</Button><Button type="submit" kind="primary" busy={busy} disabled={disabled ?? false}>{busy ? 'Working…' : action}</Button></>
}
