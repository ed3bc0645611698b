// Records that a subscription could not deliver and that the server keeps.

import { useState } from 'preact/hooks'
import { get, request, withQuery } from '../api/client.ts'
import type { DeadLetter, StreamRecord, Subscription } from '../api/types.ts'
import { formatBytes, formatCount, plural } from '../lib/format.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { segment } from '../router.ts'
import { Button, Facts, Loaded, Pill, Section, Time, Unseen } from '../ui/basic.tsx'
import { ask, openDialog, DialogFrame, toast, toastError } from '../ui/overlay.tsx'
import { Incomplete } from './common.tsx'
import { Table } from '../ui/table.tsx'
import { blockReasons } from '../lib/subscriptions.ts'

interface Page {
  dead_letters: DeadLetter[]
  next?: string
  silent_nodes?: string[]
}

interface Result {
  done: number
  failed: number
  errors?: { message: string }[]
  next?: string
  silent_nodes?: string[]
}

const placeOf = (l: DeadLetter): string => `${l.topic}/${l.partition}/${l.offset}`

export function DeadLetters({ of: s, path }: { of: Subscription; path: string }) {
  const page = useResource(`dead-letters:${s.id}:${s.dead_letters}`, (signal) => get<Page>(path, signal))
  const [busy, setBusy] = useState(false)
  const retryAll = async (): Promise<void> => {
    const r = await all(path, '/retry', 'POST')
    if (r.failed > 0) toast('error', `${plural(r.failed, 'dead letter')} still cannot be delivered: ${r.errors?.[0]?.message ?? ''}`)
    else toast('ok', `Delivered ${plural(r.done, 'dead letter')}`)
  }
  const dropAll = async (): Promise<void> => {
    const r = await all(path, '', 'DELETE')
    toast('ok', `Dropped ${plural(r.done, 'dead letter')}`)
  }
  return (
    <Section title="Dead letters" count={formatCount(s.dead_letters)} flush>
      <p class="section-note">
        These records could not be delivered. Retry delivers them with the current settings.
        <span class="row-actions">
          <Button small kind="ghost" icon="restart" needs="operate" busy={busy} onClick={() => {
            setBusy(true)
            retryAll().catch((err: unknown) => toastError(err)).finally(() => setBusy(false))
          }}>Retry all</Button>
          <Button small kind="ghost" needs="operate" onClick={() => void ask({ title: 'Drop all dead letters?', action: 'Drop all', danger: true, body: <p>{plural(s.dead_letters, 'record')} of this subscription {s.dead_letters === 1 ? 'is' : 'are'} deleted without being delivered.</p> }, dropAll)}>Drop all</Button>
        </span>
      </p>
      <Loaded of={page} what="The dead letters could not be read">{(p) => (
        <>
          <Incomplete without={p.silent_nodes} />
          <Table label="Dead letters" rows={p.dead_letters} keyOf={placeOf} columns={[
            { id: 'record', title: 'Record', class: 'fit', cell: (l) => <bdi class="strong">{placeOf(l)}</bdi> },
            { id: 'reason', title: 'Cause', class: 'grow cut', cell: (l) => <span class="cut" dir="auto"><Pill tone="bad" title={l.message}>{l.reason.replaceAll('_', ' ')}</Pill> {blockReasons[l.reason]?.[0] ?? l.message}</span> },
            { id: 'size', title: 'Size', class: 'num fit', cell: (l) => formatBytes(l.key_bytes + l.value_bytes) },
            { id: 'at', title: 'Since', class: 'num fit', cell: (l) => <Time at={l.at} /> },
            { id: 'actions', title: <Unseen>Actions</Unseen>, class: 'fit', cell: (l) => <LetterActions of={l} path={path} /> },
          ]} />
          {p.next && <p class="section-note">The first {formatCount(p.dead_letters.length)} are shown. <code>platform subscriptions dead-letters list</code> shows all.</p>}
        </>
      )}</Loaded>
    </Section>
  )
}

/** Applies an operation to all dead letters, a page at a time. */
async function all(path: string, operation: string, method: 'POST' | 'DELETE'): Promise<Result> {
  const total: Result = { done: 0, failed: 0, errors: [] }
  for (let after: string | undefined = ''; after !== undefined;) {
    const r: Result = await request<Result>(withQuery(path + operation, { after: after || undefined }), { method })
    total.done += r.done
    total.failed += r.failed
    total.errors!.push(...(r.errors ?? []))
    if (r.silent_nodes) total.silent_nodes = r.silent_nodes
    after = r.next
  }
  refreshAll()
  if (total.silent_nodes) toast('error', `Incomplete, no report from ${total.silent_nodes.join('; ')}`)
  return total
}

function LetterActions({ of: l, path }: { of: DeadLetter; path: string }) {
  const letter = `${path}/${segment(l.topic)}/${l.partition}/${l.offset}`
  const name = placeOf(l)
  const run = async (suffix: string, method: 'POST' | 'DELETE', done: string): Promise<void> => {
    await request(letter + suffix, { method })
    toast('ok', `${done} ${name}`)
    refreshAll()
  }
  return (
    <span class="row-actions">
      <Button small kind="ghost" needs="payloads" onClick={() => { get<StreamRecord>(letter).then((r) => void openDialog(`Record ${name}`, (close) => <RecordView record={r} close={close} />, true), (err: unknown) => toastError(err)) }}>Show</Button>
      <Button small kind="ghost" icon="restart" needs="operate" onClick={() => { run('/retry', 'POST', 'Delivered').catch((err: unknown) => toastError(err)) }}>Retry</Button>
      <Button small kind="ghost" needs="operate" onClick={() => void ask({ title: 'Drop this record?', action: 'Drop', danger: true, body: <p>The record {name} is deleted without being delivered.</p> }, () => run('', 'DELETE', 'Dropped'))}>Drop</Button>
    </span>
  )
}

/** A record with its key, value and headers. */
export function RecordView({ record: r, close }: { record: StreamRecord; close: () => void }) {
  const text = (b: StreamRecord['key']) => (b === null ? <span class="faint">none</span> : <pre class="mono wrap" tabIndex={0}>{b.text ?? `base64: ${b.base64 ?? ''}`}</pre>)
  return (
    <DialogFrame title={`Record at offset ${r.offset} of ${r.topic}/${r.partition}`} close={close}>
      <Facts rows={[
        r.timestamp ? ['Timestamp', <Time at={r.timestamp} absolute />] : null, [`Key (${formatBytes(r.key_bytes)})`, text(r.key)], [`Value (${formatBytes(r.value_bytes)})`, text(r.value)],
        ...r.headers.map((h): [string, preact.ComponentChildren] => [`Header ${h.name}`, text(h.value)]),
      ]} />
    </DialogFrame>
  )
}
