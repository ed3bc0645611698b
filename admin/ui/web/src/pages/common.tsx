// What several pages show.

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Counts, Info, Invocation } from '../api/types.ts'
import { plural } from '../lib/format.ts'
import { cameFromHere, href, navigate, segment } from '../router.ts'
import { Button, Field } from '../ui/basic.tsx'
import { FormButtons, useSubmission } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { DialogFrame, openDialog } from '../ui/overlay.tsx'

/** Counts of one service. */
export function countsOf(counts: Counts | null | undefined, service: string): { unfinished: number; failing: number; failed: number; succeeded: number; ended: number } {
  const out = { unfinished: 0, failing: 0, failed: 0, succeeded: 0, ended: 0 }
  for (const c of counts?.by_service ?? []) {
    if (c.service !== service) continue
    for (const [status, n] of Object.entries(c.by_status)) {
      if (status !== 'completed') out.unfinished += n
      if (status === 'backing-off' || status === 'paused') out.failing += n
    }
    for (const [result, n] of Object.entries(c.by_result ?? {})) {
      if (result === 'success') out.succeeded += n
      else if (result === 'failure') out.failed += n
      else out.ended += n // cancelled or killed by an operator
    }
  }
  return out
}

/** Ids of nodes follow the order in which they joined. */
export const byName = <T extends { name: string }>(nodes: readonly T[]): T[] => [...nodes].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))

export function Notices({ list }: { list: Info[] | undefined }) {
  if (!list || list.length === 0) return null
  return <ul class="notices">{list.map((n) => <li key={n.message}><Icon name="alert" size={14} />{n.code && <b>{n.code} </b>}{n.message}</li>)}</ul>
}

export const describeInUse = (n: number): string => (n === 0 ? 'drained' : `${plural(n, 'unfinished invocation')}`)

/** Back to the page before, unless this one was opened by a link from elsewhere. */
export function Previous() {
  return cameFromHere() ? <Button icon="left" onClick={() => history.back()}>Previous</Button> : null
}

interface PagerProps {
  count: number
  noun: string
  /** Of this page; empty for the first. */
  cursor: string
  next: string | undefined
  changing: boolean
  to: (cursor: string | undefined) => string
}

/** The footer of a list in pages. */
export function Pager({ count, noun, cursor, next, changing, to }: PagerProps) {
  return (
    <footer class="pager">
      <span class="muted">{plural(count, noun)}{next || cursor ? ' on this page' : ''}</span>
      <span class="grow" />
      {cursor !== '' && <Previous />}
      {cursor !== '' && <Button onClick={() => navigate(to(undefined))}>First</Button>}
      {next && <Button icon="right" disabled={changing} onClick={() => navigate(to(next))}>Next</Button>}
    </footer>
  )
}

/** Asks before something is paused, and why. */
export function askPause(what: string, effect: ComponentChildren, run: (reason: string) => Promise<void>): void {
  void openDialog(`Pause this ${what}?`, (close) => <PauseForm what={what} effect={effect} run={run} close={close} />)
}

function PauseForm({ what, effect, run, close }: { what: string; effect: ComponentChildren; run: (reason: string) => Promise<void>; close: () => void }) {
  const [reason, setReason] = useState('')
  const form = useSubmission(close, () => run(reason.trim()))
  return (
    <form onSubmit={form.submit}>
      <DialogFrame title={`Pause this ${what}?`} close={close} actions={<FormButtons close={close} action="Pause" busy={form.busy} />}>
        <p>{effect}</p>
        <Field label="Reason, for other operators"><input class="input" value={reason} maxLength={512} autofocus onInput={(e) => setReason(e.currentTarget.value)} /></Field>
        {form.error && <p class="dialog-error" role="alert">{form.error.message}</p>}
      </DialogFrame>
    </form>
  )
}

/** The page of the object or run that an invocation belongs to. */
export const objectOf = (i: Invocation): string => href(`/objects/${segment(i.target_service_name)}/${segment(i.target_service_key ?? '')}`, { scope: i.scope })

/** Says which nodes and partitions a list has no data of. */
export function Incomplete({ without }: { without: string[] | undefined }) {
  return without && without.length > 0 ? <p class="muted" role="status">Incomplete, no report from {without.join('; ')}</p> : null
}
