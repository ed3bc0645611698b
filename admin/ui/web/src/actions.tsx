// What can be done with invocations.

import { request } from './api/client.ts'
import type { BatchAnswer, Deployment, Invocation, Job } from './api/types.ts'
import { batchConfirmation } from './lib/confirm.ts'
import { formatCount, plural } from './lib/format.ts'
import { refreshAll } from './live.ts'
import { optional } from './resource.ts'
import { href, navigate, segment } from './router.ts'
import { refusalOf } from './session.ts'
import { DialogFrame, ask, openDialog, toast } from './ui/overlay.tsx'
import { Button, Field, Switch } from './ui/basic.tsx'
import { FormButtons, useSubmission } from './ui/form.tsx'
import type { IconName } from './ui/icons.tsx'
import { useMemo, useState } from 'preact/hooks'
import { buildSteps, type Step } from './lib/journal.ts'
import { readEntries } from './journals.ts'
import { useResource } from './resource.ts'
import type { Filter } from './lib/filters.ts'

export type Operation = 'cancel' | 'kill' | 'pause' | 'resume' | 'restart-as-new' | 'purge'

interface Describe {
  title: string
  icon: IconName
  danger: boolean
  consequence: string
  /** Statuses of the invocations that the action applies to. */
  on: (status: string) => boolean
  past: string
}

const unfinished = (s: string): boolean => s !== 'completed'

export const operations: Record<Operation, Describe> = {
  cancel: { title: 'Cancel', icon: 'stop', danger: true, past: 'cancelled', on: unfinished, consequence: 'The handler gets the cancellation as an error at its next step and can undo what it did. Calls it made are cancelled, too.' },
  kill: { title: 'Kill', icon: 'cross', danger: true, past: 'killed', on: unfinished, consequence: 'It ends immediately, without running compensations of its handler. Prefer Cancel.' },
  pause: { title: 'Pause', icon: 'pause', danger: false, past: 'paused', on: (s) => ['running', 'suspended', 'backing-off', 'ready'].includes(s), consequence: 'An open attempt ends first. It stays paused until it is resumed.' },
  resume: { title: 'Resume', icon: 'play', danger: false, past: 'resumed', on: (s) => ['paused', 'backing-off', 'suspended'].includes(s), consequence: 'It continues immediately, from its journal.' },
  'restart-as-new': { title: 'Restart as new', icon: 'restart', danger: false, past: 'restarted', on: (s) => s === 'completed', consequence: 'A new invocation with the same input is created.' },
  purge: { title: 'Purge', icon: 'trash', danger: true, past: 'purged', on: (s) => s === 'completed', consequence: 'Result, journal and idempotency key are deleted now. This cannot be undone.' },
}

/**
 * The actions that apply to an invocation. The run of a workflow cannot be restarted: once purged, its key can run again. Neither can an invocation whose
 * journal, which contains the input, is no longer kept.
 */
export const applicable = (i: Invocation): Operation[] =>
  (Object.keys(operations) as Operation[]).filter((o) => operations[o].on(i.status) && (o !== 'restart-as-new' || (i.target_service_ty !== 'workflow' && i.journal_size > 0)))

/** What an action does with this invocation. */
const consequence = (i: Invocation, operation: Operation): string =>
  operation === 'purge' && i.target_service_ty === 'workflow'
    ? 'Result and journal are deleted now, and if this is the run of the workflow, its state and promises as well: its key can then run again. This cannot be undone.'
    : operations[operation].consequence

const path = (id: string, operation: Operation): string => `/invocations/${segment(id)}/${operation}`

/** Explains why the user may not change invocations, if so. */
function permitted(): boolean {
  const refusal = refusalOf('operate')
  if (refusal) toast('error', refusal)
  return refusal === undefined
}

/** Asks, and does it with one invocation. */
export function act(i: Invocation, operation: Operation): void {
  if (!permitted()) return
  const d = operations[operation]
  if (operation === 'resume' || operation === 'restart-as-new') {
    void openDialog(d.title, (close) => <OnDeployment i={i} operation={operation} close={close} />)
    return
  }
  if (operation === 'pause') {
    void openDialog(d.title, (close) => <PauseDialog i={i} close={close} />)
    return
  }
  void ask({ title: `${d.title} this invocation?`, action: `${d.title} invocation`, danger: d.danger, body: <><p class="mono wrap">{i.target}</p><p>{consequence(i, operation)}</p></> }, async () => {
    await request(path(i.id, operation), { method: 'PATCH' })
    toast('ok', `${i.target} ${operation === 'cancel' ? 'is being cancelled' : `was ${d.past}`}`)
    refreshAll()
    if (operation === 'purge') navigate(href('/invocations'))
  })
}

function PauseDialog({ i, close }: { i: Invocation; close: () => void }) {
  const [reason, setReason] = useState('')
  const form = useSubmission(close, async () => {
    await request(path(i.id, 'pause') + (reason.trim() ? `?reason=${encodeURIComponent(reason.trim())}` : ''), { method: 'PATCH' })
    toast('ok', `${i.target} is being paused`)
    refreshAll()
  })
  return (
    <form onSubmit={form.submit}>
      <DialogFrame title="Pause this invocation?" close={close} actions={<FormButtons close={close} action="Pause" busy={form.busy} />}>
        <p class="mono wrap">{i.target}</p>
        <p>{operations.pause.consequence}</p>
        <Field label="Reason" hint="Shown on the page of the invocation while it is paused."><input class="input" value={reason} maxLength={500} autofocus onInput={(e) => setReason(e.currentTarget.value)} /></Field>
        {form.error && <p class="dialog-error" role="alert">{form.error.message}</p>}
      </DialogFrame>
    </form>
  )
}

/** Resume and restart offer a choice of the deployment, and restart of the journal entry. */
function OnDeployment({ i, operation, close }: { i: Invocation; operation: 'resume' | 'restart-as-new'; close: () => void }) {
  const d = operations[operation]
  const deployments = useResource('deployments', (signal) => request<{ deployments: Deployment[] }>('/deployments', { signal }), { every: 0 })
  const [on, setOn] = useState('')
  const [from, setFrom] = useState('0')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const journal = useResource(operation === 'restart-as-new' && i.journal_size > 1 ? `restart:${i.id}` : undefined, () => readEntries(i.id, 0), { every: 0 })
  const steps = useMemo(() => buildSteps(journal.data ?? []).filter((s) => s.kind !== 'input' && s.kind !== 'output'), [journal.data])
  const suitable = deployments.data?.deployments.filter((o) => o.services.some((s) => s.name === i.target_service_name)) ?? []
  const submit = (e: Event): void => {
    e.preventDefault()
    setBusy(true)
    const q = new URLSearchParams()
    if (on) q.set('deployment', on)
    if (operation === 'restart-as-new' && from !== '0') q.set('from', from)
    const text = q.toString()
    request<{ new_invocation_id?: string }>(path(i.id, operation) + (text ? `?${text}` : ''), { method: 'PATCH' }).then((answer) => {
      close()
      refreshAll()
      toast('ok', `${i.target} was ${d.past}`)
      if (answer?.new_invocation_id) navigate(href(`/invocations/${segment(answer.new_invocation_id)}`))
    }, (err: Error) => {
      setError(err.message)
      setBusy(false)
    })
  }
  return (
    <form onSubmit={submit}>
      <DialogFrame title={`${d.title}?`} close={close} actions={<><Button onClick={close}>Close</Button><Button type="submit" kind="primary" busy={busy}>{d.title}</Button></>}>
        <p class="mono wrap">{i.target}</p>
        <p>{d.consequence}</p>
        <Field label="Deployment" hint="Choose another one to continue with corrected code.">
          <select class="input" value={on} onChange={(e) => setOn(e.currentTarget.value)}>
            <option value="">{operation === 'resume' ? 'keep the one it started on' : 'latest'}</option>
            <option value="latest">latest</option>
            {suitable.map((o) => <option key={o.id} value={o.id}>{o.id} · {o.uri ?? o.arn}{o.id === i.pinned_deployment_id ? ' · current' : ''}</option>)}
          </select>
        </Field>
        {steps.length > 0 && (
          <Field label="Start" hint="Results of the steps before are copied; these steps do not run again.">
            <select class="input" value={from} onChange={(e) => setFrom(e.currentTarget.value)}>
              <option value="0">from the beginning</option>
              {steps.map((s) => <option key={s.index} value={String(s.index)}>after {s.index} · {stepText(s)}</option>)}
            </select>
          </Field>
        )}
        {steps.length > 0 && <RestartPreview steps={steps} from={Number(from)} />}
        {error && <p class="dialog-error" role="alert">{error}</p>}
      </DialogFrame>
    </form>
  )
}

const stepText = (s: Step): string => `${s.verb} ${s.subject}`.trim()

/** Which steps keep their results, and which run again. */
function RestartPreview({ steps, from }: { steps: readonly Step[]; from: number }) {
  const kept = steps.filter((s) => s.index <= from)
  const again = steps.filter((s) => s.index > from)
  const around = [...kept.slice(-3), ...again.slice(0, 3)]
  return (
    <div class="restart-preview" role="group" aria-label="Preview">
      <p><b class="num">{plural(kept.length, 'step')}</b> kept, <b class="num">{plural(again.length, 'step')}</b> to run again{steps.length > 0 && from === 0 ? ', with the same input' : ''}</p>
      <ul class="mono">
        {kept.length > 3 && <li class="muted">…</li>}
        {around.map((s) => <li key={s.index} class={s.index <= from ? 'kept' : 'again'}><span class="num">{s.index}</span><span class="cut">{stepText(s)}</span><span class="muted">{s.index <= from ? 'kept' : 'runs again'}</span></li>)}
        {again.length > 3 && <li class="muted">…</li>}
      </ul>
    </div>
  )
}

/** Invocations in one request of the batch operations. */
const batchSize = 500

/** What a batch is about: chosen invocations, or all that match filters. */
export interface Batch {
  ids?: readonly string[]
  filters?: readonly Filter[]
  count?: number | undefined
  sample?: readonly string[]
  /** They started on a deployment that is no longer the latest of their service: the latest is proposed. */
  outdated?: boolean
}

export function batch(operation: Operation, of: Batch): void {
  if (!permitted()) return
  const d = operations[operation]
  const chosen = { deployment: of.outdated ? 'Latest' : '' }
  const n = of.ids?.length ?? of.count
  const what = n === undefined ? 'all matching invocations' : plural(n, 'invocation')
  const typed = batchConfirmation(operation, { danger: d.danger, count: n, filtered: of.filters !== undefined })
  void ask({
    title: `${d.title} ${what}?`, action: `${d.title} ${what}`, danger: d.danger, ...(typed === undefined ? {} : { typed }),
    body: (
      <>
        <p>{d.consequence}</p>
        {of.sample && of.sample.length > 0 && <ul class="sample mono">{of.sample.slice(0, 5).map((s) => <li key={s}>{s}</li>)}{(n ?? 0) > 5 && <li class="muted">and {formatCount((n ?? 0) - 5)} more</li>}</ul>}
        {(operation === 'resume' || operation === 'restart-as-new') && <BatchDeployment operation={operation} initial={chosen.deployment} choose={(id) => { chosen.deployment = id }} />}
        {of.filters && <p class="muted">The server runs this as a job, which continues after this page is closed.</p>}
      </>
    ),
  }, async () => {
    const job = await startJob(operation, of, chosen.deployment)
    if (job) {
      toast('ok', <>Started. <a href={href(`/jobs/${segment(job.id)}`)}>See its progress</a></>)
      refreshAll()
      return
    }
    if (!of.ids) throw new Error('This server has no jobs. Select invocations instead.')
    await inBatches(operation, of.ids)
  })
}

/** Many invocations can be of several services, so any deployment can be chosen. */
function BatchDeployment({ operation, initial, choose }: { operation: Operation; initial: string; choose: (id: string) => void }) {
  const deployments = useResource('deployments', (signal) => request<{ deployments: Deployment[] }>('/deployments', { signal }), { every: 0 })
  return (
    <Field label="Deployment" hint="Choose another one to continue with corrected code.">
      <select class="input" onChange={(e) => choose(e.currentTarget.value)}>
        <option value="">{operation === 'resume' ? 'keep the one it started on' : 'latest'}</option>
        {operation === 'resume' && <option value="Latest" selected={initial === 'Latest'}>latest</option>}
        {[...deployments.data?.deployments ?? []].reverse().map((o) => <option key={o.id} value={o.id}>{o.id} · {o.uri ?? o.arn}</option>)}
      </select>
    </Field>
  )
}

async function startJob(operation: Operation, of: Batch, deployment: string): Promise<Job | null> {
  if (of.ids && of.ids.length <= batchSize && deployment === '') return null // small ones are executed by the request
  const filter: Record<string, unknown> = {}
  for (const f of of.filters ?? []) {
    const had = filter[f.name]
    filter[f.name] = had === undefined ? f.value : Array.isArray(had) ? [...(had as string[]), f.value] : [had, f.value]
  }
  return optional('/jobs', () => request<Job>('/jobs', { method: 'POST', body: { operation, ...(deployment ? { deployment } : {}), ...(of.ids ? { invocation_ids: of.ids } : { filter }) } }))
}

async function inBatches(operation: Operation, all: readonly string[]): Promise<void> {
  let succeeded = 0
  const failed: BatchAnswer['failed'] = []
  for (let i = 0; i < all.length; i += batchSize) {
    const answer = await request<BatchAnswer>(`/internal/invocations_batch_operations/${operation}`, { method: 'POST', body: { invocation_ids: all.slice(i, i + batchSize) }, timeout: 120_000 })
    succeeded += answer.succeeded.length
    failed.push(...answer.failed)
  }
  refreshAll()
  const d = operations[operation]
  if (failed.length === 0) {
    toast('ok', `${plural(succeeded, 'invocation')} ${operation === 'cancel' ? 'cancelled' : d.past}`)
    return
  }
  void openDialog('Not all succeeded', (close) => (
    <DialogFrame title={`${formatCount(failed.length)} of ${formatCount(all.length)} failed`} close={close} actions={<Button kind="primary" onClick={close}>Close</Button>}>
      <p>{plural(succeeded, 'invocation')} {d.past}. The others:</p>
      <ul class="failures-list">{failed.slice(0, 100).map((f) => <li key={f.invocation_id}><a class="mono" href={href(`/invocations/${segment(f.invocation_id)}`)}>{f.invocation_id}</a><span>{f.error}</span></li>)}</ul>
    </DialogFrame>
  ))
}

export { Switch }
