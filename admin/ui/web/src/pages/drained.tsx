// Removes deployments that nothing needs any longer.

import { useEffect, useState } from 'preact/hooks'
import { get, request, withQuery } from '../api/client.ts'
import type { Counts, Deployment } from '../api/types.ts'
import { plural } from '../lib/format.ts'
import { refreshAll } from '../live.ts'
import { segment } from '../router.ts'
import { Button, Skeleton } from '../ui/basic.tsx'
import { DialogFrame, openDialog, toast } from '../ui/overlay.tsx'
import { describeInUse } from './common.tsx'

/** How many deployments are checked concurrently; the others follow when the first are removed. */
const maxChecked = 50

/** Asks which of the superseded deployments to remove. */
export function removeDrained(superseded: readonly Deployment[]): void {
  void openDialog('Remove drained deployments', (close) => <Drained list={superseded.slice(0, maxChecked)} more={superseded.length - maxChecked} close={close} />, true)
}

function Drained({ list, more, close }: { list: readonly Deployment[]; more: number; close: () => void }) {
  const [unfinished, setUnfinished] = useState<Record<string, number>>({})
  const [kept, setKept] = useState<ReadonlySet<string>>(new Set())
  const [failed, setFailed] = useState<Record<string, string>>({})
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set())
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  useEffect(() => {
    const gone = new AbortController()
    const count = async (): Promise<void> => {
      for (const d of list) {
        const counts = await get<Counts>(withQuery('/invocations/counts', { deployment: d.id }), gone.signal)
        const open = Object.entries(counts.by_status).reduce((sum, [status, n]) => (status === 'completed' ? sum : sum + n), 0)
        setUnfinished((before) => ({ ...before, [d.id]: open }))
      }
    }
    count().catch((err: Error) => gone.signal.aborted || setError(err.message))
    return () => gone.abort()
  }, [])
  const chosen = list.filter((d) => unfinished[d.id] === 0 && !kept.has(d.id) && !removed.has(d.id))
  const checking = error === '' && list.some((d) => unfinished[d.id] === undefined)
  const remove = async (): Promise<void> => {
    setBusy(true)
    let [done, refused] = [0, 0]
    for (const d of chosen) {
      // Without force: the server refuses it if an invocation has started meanwhile.
      await request(`/deployments/${segment(d.id)}`, { method: 'DELETE' }).then(() => {
        done++
        setRemoved((before) => new Set(before).add(d.id))
      }, (err: Error) => {
        refused++
        setFailed((before) => ({ ...before, [d.id]: err.message }))
        setKept((before) => new Set(before).add(d.id))
      })
    }
    setBusy(false)
    refreshAll()
    if (done > 0) toast('ok', `${plural(done, 'deployment')} removed`)
    if (refused === 0) close()
  }
  const choose = (id: string, on: boolean): void => setKept((before) => {
    const next = new Set(before)
    if (on) next.delete(id)
    else next.add(id)
    return next
  })
  return (
    <form onSubmit={(e) => {
      e.preventDefault()
      if (chosen.length > 0 && !busy) void remove()
    }}>
      <DialogFrame title="Remove drained deployments" close={close} actions={
        <>
          <Button onClick={close}>Close</Button>
          <Button kind="danger" type="submit" busy={busy} disabled={chosen.length === 0 || checking}>{busy ? 'Removing…' : checking ? 'Counting invocations…' : `Remove ${plural(chosen.length, 'deployment')}`}</Button>
        </>
      }>
        <p>No service has its newest revision on these deployments. Those that no unfinished invocation needs can be removed.</p>
        <ul class="choices">
          {list.map((d) => {
            const open = unfinished[d.id]
            return (
              <li key={d.id}>
                <label>
                  <input type="checkbox" checked={chosen.includes(d) || removed.has(d.id)} disabled={open !== 0 || busy || removed.has(d.id)} onChange={(e) => choose(d.id, e.currentTarget.checked)} />
                  <span class="mono cut" title={d.id}>{d.uri ?? d.arn}</span>
                  <span class="muted">{removed.has(d.id) ? 'removed' : open === undefined ? (error ? 'not known' : <Skeleton rows={1} />) : describeInUse(open)}</span>
                </label>
                {failed[d.id] && <p class="dialog-error" role="alert">{failed[d.id]}</p>}
              </li>
            )
          })}
        </ul>
        {more > 0 && <p class="muted">{plural(more, 'further deployment')} can be checked afterwards.</p>}
        {error && <p class="dialog-error" role="alert">The invocations could not be counted: {error}</p>}
      </DialogFrame>
    </form>
  )
}
