// One invocation: what happened, why it waits, what can be done.

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { act, applicable, operations, type Operation } from '../actions.tsx'
import { APIError, get } from '../api/client.ts'
import type { Explain, Invocation, JournalEvent, Queue } from '../api/types.ts'
import { explainRecord, withQueueName } from '../lib/explain.ts'
import { formatBytes, formatCount, kindOfID, plural } from '../lib/format.ts'
import type { Step } from '../lib/journal.ts'
import { dueAt, formatDuration, parseISODuration } from '../lib/time.ts'
import { readWhole, useJournals, type Recorded } from '../journals.ts'
import { liveMode } from '../live.ts'
import { withMore } from '../more.ts'
import { remember } from '../prefs.ts'
import { saveFile } from '../lib/save.ts'
import { optional, useResource, type Resource } from '../resource.ts'
import { href, segment, type Match } from '../router.ts'
import {
  Button, Command, Copy, DeploymentID, Elapsed, Empty, ErrorBox, ErrorCodeHint, Facts, ID, InvocationID, useErrorCode, Menu, Pill, Section, Skeleton, Stale, Status, Target, Time, now, resultOf, statusLook, typeName,
} from '../ui/basic.tsx'
import { Icon, StatusShape } from '../ui/icons.tsx'
import { toast, toastError } from '../ui/overlay.tsx'
import { failureText } from '../lib/failure-text.ts'
import { objectOf } from './common.tsx'
import { TimedText, WaitChain, invocationsOf } from './wait-chain.tsx'
import { JournalView, type Unfolded } from './journal-view.tsx'

export function InvocationPage({ params }: { params: Match }) {
  const id = params.id!
  const topics = [`invocation:${id}`]
  const wellFormed = kindOfID(id) === 'invocation'
  const inv = useResource(wellFormed ? `inv:${id}` : undefined, (s) => get<Invocation>(`/invocations/${segment(id)}`, s), { topics, every: 1500, atLeast: 400 })
  const malformed = !wellFormed || (inv.error instanceof APIError && inv.error.status === 400)
  const live = inv.data !== undefined && inv.data.status !== 'completed'
  const events = useResource(inv.data ? `events:${id}` : undefined, async (s) => (await get<{ events: JournalEvent[] }>(`/invocations/${segment(id)}/events`, s)).events, { topics: live ? topics : [], every: live ? 3000 : 0, atLeast: 1000 })
  const explain = useExplain(live ? inv.data : undefined)
  const opened = inv.data?.id
  useEffect(() => {
    const i = inv.data
    if (i) remember({ id: i.id, target: `${i.target_service_name}/${i.target_service_ty === 'service' ? '' : `${i.target_service_key ?? ''}/`}${i.target_handler_name}` })
  }, [opened])
  if (!wellFormed || (inv.error instanceof APIError && (inv.error.status === 404 || inv.error.status === 400) && !inv.data)) {
    return (
      <Empty title={malformed ? 'This is not the id of an invocation' : 'This invocation does not exist'} icon="invocations" page>
        <p class="mono wrap">{id}</p>
        {inv.error instanceof APIError && inv.error.status === 400 && <p>{inv.error.message.replace(/^The request field 'invocation_id' is invalid\. Reason: malformed id: /, '').replace(/^./, (c) => c.toUpperCase())}.</p>}
        <p>{!malformed && 'It may have been purged: results are kept for the retention of their service. '}<a href={href('/invocations')}>All invocations</a></p>
      </Empty>
    )
  }
  if (!inv.data) return inv.error ? <ErrorBox what="The invocation could not be read" error={inv.error} retry={inv.reload} /> : <Skeleton rows={14} />
  return (
    <>
      <Stale error={inv.error} at={inv.at} retry={inv.reload} />
      <InvocationView inv={inv.data} events={events.data ?? []} explain={explain.data ?? undefined} />
    </>
  )
}

/** Each read of an explanation is a query for each invocation of the chain. */
function useExplain(i: Invocation | undefined): Resource<Explain | null> {
  const [chain, setChain] = useState<readonly string[]>([])
  const path = i && `/invocations/${segment(i.id)}/explain`
  const explain = useResource(i && `explain:${i.id}:${i.status}`, (s) => optional('/invocations/{invocation_id}/explain', () => get<Explain>(path!, s)), {
    topics: i ? [i.id, ...chain].map((id) => `invocation:${id}`) : [], every: 15_000, atLeast: i?.status === 'running' ? 5000 : 1000, keep: true,
  })
  const ids = invocationsOf(explain.data?.waiting_for ?? []).slice(0, maxFollowed).join()
  useEffect(() => setChain(ids === '' ? [] : ids.split(',')), [ids])
  // Without notices, a change of the record triggers a reload. A running invocation changes with each entry.
  const changed = i && i.status !== 'running' && liveMode.value === 'poll' ? i.modified_at : ''
  useEffect(() => {
    if (changed && explain.at > 0) explain.reload()
  }, [changed])
  return explain
}

/** Invocations of a wait chain whose changes are followed: a stream has 16 topics. */
const maxFollowed = 8

/** The main action of a status. */
function mainAction(i: Invocation): Operation {
  switch (i.status) {
    case 'paused':
    case 'backing-off':
      return 'resume'
    case 'completed':
      return i.target_service_ty === 'workflow' ? 'purge' : 'restart-as-new'
  }
  return 'cancel'
}

export function InvocationView({ inv: i, events, explain, fixed }: { inv: Invocation; events: JournalEvent[]; explain?: Explain | undefined; fixed?: ReadonlyMap<string, Recorded> }) {
  const live = i.status !== 'completed' && !fixed
  const result = resultOf(i)
  const main = mainAction(i)
  const title = (o: Operation): string => (o === 'resume' && i.status === 'backing-off' ? 'Retry now' : operations[o].title)
  const others = applicable(i).filter((o) => o !== main)
  return (
    <>
      <header class={`inv-head ${statusLook(i.status, result).tone}`}>
        <div class="inv-title">
          <div class="crumbs"><a href={href('/invocations')}>Invocations</a><Icon name="right" size={12} />{i.scope && <><span>{i.scope}</span><Icon name="right" size={12} /></>}<a href={href(`/services/${segment(i.target_service_name)}`)}>{i.target_service_name}</a></div>
          <h1><Target service={i.target_service_name} name={i.target_service_ty === 'service' ? undefined : i.target_service_key ?? ''} handler={i.target_handler_name} /></h1>
          <div class="inv-sub">
            <Status status={i.status} result={result} note={i.retry_count && i.retry_count > 1 && live ? `${i.retry_count} attempts` : undefined} />
            <span class="mono inv-id">{i.id}<Copy text={i.id} label="Copy id" /></span>
          </div>
        </div>
        {!fixed && (
          <div class="page-actions">
            <Button kind={operations[main].danger ? 'plain' : 'primary'} icon={operations[main].icon} needs="operate" onClick={() => act(i, main)}>{title(main)}</Button>
            <Menu label="More actions" icon="more" items={[
              ...others.map((o) => ({ title: title(o), icon: operations[o].icon, danger: operations[o].danger, needs: 'operate' as const, run: () => act(i, o) })),
              ...(i.target_service_ty === 'workflow' ? [] : [{ title: 'Copy with edited input', icon: 'copy' as const, needs: 'operate' as const, run: () => withMore((m) => m.copyInvocation(i)) }]),
              'line' as const,
              { title: 'Export bundle', icon: 'download' as const, run: () => void exportBundle(i, events, explain) },
            ]} />
          </div>
        )}
      </header>
      <Body i={i} events={events} explain={explain} fixed={fixed} live={live} />
    </>
  )
}

function Body({ i, events, explain, fixed, live }: { i: Invocation; events: JournalEvent[]; explain: Explain | undefined; fixed: ReadonlyMap<string, Recorded> | undefined; live: boolean }) {
  const [unfolded, setUnfolded] = useState<Unfolded>(new Map())
  const journals = useJournals([i.id, ...new Set(unfolded.values())], live, fixed)
  return (
    <>
      <Why i={i} explain={explain} steps={journals.of(i.id).steps} live={live} />
      <FailureCard i={i} />
      <div class="about"><Lifecycle i={i} live={live} /><Details i={i} /></div>
      <JournalView inv={i} events={events} live={live} fixed={fixed !== undefined} journals={journals} unfolded={unfolded} setUnfolded={setUnfolded} />
    </>
  )
}

/** Why the invocation does not run, and what can be done about it. */
function Why({ i, explain, steps, live }: { i: Invocation; explain: Explain | undefined; steps: readonly Step[]; live: boolean }) {
  const local = explainRecord(i, steps, now.value)
  const calm = i.status === 'scheduled' || i.status === 'suspended' || i.status === 'ready' || i.status === 'running'
  // The failure has a card of its own.
  const details = (explain?.details ?? []).filter((d) => d.title !== 'Last failure')
  // The failure card has the remedy of its error code.
  const remedy = useErrorCode(i.last_failure_error_code)?.remedy
  const nextSteps = (explain?.next_steps ?? []).filter((s) => !s.command?.startsWith('platform explain') && !s.command?.startsWith('platform awakeables') && s.text !== remedy)
  if (i.status === 'completed' || (!explain && !local)) return null
  if (explain && i.status === 'running' && details.length === 0 && nextSteps.length === 0 && !local) return null
  const look = statusLook(i.status)
  const waits = explain?.waiting_for ?? []
  return (
    <section class={`why ${calm ? 'calm' : 'warn'}`} aria-label="Why it is not running">
      <span class={`why-shape ${look.tone}`}><StatusShape shape={look.shape} size={16} /></span>
      <div class="why-body">
        <h2>{!explain ? local!.title : i.status === 'suspended' && waits.length > 0 ? `It is suspended and waits for${explain.waits_for_first ? ' the first of' : ''}` : <TimedText text={withQueueName(explain.summary, i.scope, i.limit_key)} />}</h2>
        {explain
          ? <>{details.map((d, n) => <p key={n}>{d.title && <b>{d.title}. </b>}<TimedText text={d.text} /></p>)}<WaitChain waits={waits} live={live} /></>
          : local!.text.length > 1 && i.status === 'suspended'
            ? <ul>{local!.text.map((t) => <li key={t}>{t}</li>)}</ul>
            : local!.text.map((t) => <p key={t}>{t}</p>)}
        {i.cancel_requested_at && <p><b>Cancellation requested</b> <Time at={i.cancel_requested_at} />. The handler decides how it ends.</p>}
        {i.pause_requested && <p><b>Pause requested.</b> It takes effect when the open attempt ends.</p>}
        {i.status === 'pending' && i.target_service_ty !== 'service' && <p><a href={objectOf(i)}>Show the holder of the key and the waiting invocations</a></p>}
        {nextSteps.length > 0 && (
          <div class="next-steps">
            {nextSteps.map((s, n) => s.command ? <div key={n} class="with-command"><Command text={s.command} /><span>{besideCommand(s.text, s.command)}</span></div> : <p key={n}>{s.text.replaceAll('`', '').replace(/^Nothing: it/, 'It')}</p>)}
          </div>
        )}
      </div>
    </section>
  )
}

/** The text of a step whose command is shown beside it. */
function besideCommand(text: string, command: string): string {
  return text.replace(`: \`${command}\`.`, '.').replace(`\`${command}\``, (_, at: number) => (at === 0 ? 'This command' : 'this command')).replace(/(\. )this command/, '$1This command').replaceAll('`', '')
}

function FailureCard({ i }: { i: Invocation }) {
  const text = i.completion_failure ?? (i.status === 'completed' ? undefined : i.last_failure)
  if (!text) return null
  const { message, details, trace } = failureText(text)
  const result = resultOf(i)
  const title = result === 'killed' || result === 'cancelled' ? statusLook(i.status, result).title : i.completion_failure ? 'Failed with a terminal error' : `Last attempt failed${i.retry_count ? ` (attempt ${i.retry_count})` : ''}`
  return (
    <section class="failure-card" aria-label="Failure">
      <header><StatusShape shape="fail" size={13} /><h2>{title}</h2>{!i.completion_failure && i.next_retry_at && i.status === 'backing-off' && <span class="muted">next attempt <Time at={i.next_retry_at} /></span>}<span class="grow" /><Copy text={text} label="Copy the failure" /></header>
      <p class="failure-message" dir="auto">{message}</p>
      {details && <p class="failure-message details" dir="auto">{details}</p>}
      {i.last_failure_error_code && !i.completion_failure && <ErrorCodeHint code={i.last_failure_error_code} />}
      {trace && <details><summary>Stack trace</summary><pre tabIndex={0}>{trace}</pre></details>}
    </section>
  )
}

/** What created an invocation. */
function origin(i: Invocation): ComponentChildren {
  if (i.invoked_by_id) return <>by <a href={href(`/invocations/${segment(i.invoked_by_id)}`)} title={i.invoked_by_id}>{i.invoked_by === 'restart_as_new' ? 'a restart' : <bdi>{i.invoked_by_target ?? i.invoked_by_id}</bdi>}</a></>
  return i.invoked_by === 'ingress' ? 'through the ingress' : `by ${i.invoked_by === 'restart_as_new' ? 'a restart' : `a ${i.invoked_by.replaceAll('_', ' ')}`}`
}

/** A moving average of the queue of an invocation. */
function AverageOf({ value, id }: { value: string | undefined; id: string }) {
  const average = parseISODuration(value)
  return average === undefined ? null : <a class="muted" href={href('/flow-control/queues', { id })} title="Moving average of its queue">average {formatDuration(average)}</a>
}

/** The steps of an invocation from its creation to the end of its retention. */
function Lifecycle({ i, live }: { i: Invocation; live: boolean }) {
  // A queue exists only while it has invocations.
  const queue = useResource(i.vqueue_id ? `vqueue:${i.vqueue_id}` : undefined, (s) => get<Queue>(`/vqueues/${segment(i.vqueue_id!)}`, s), { every: live ? 10_000 : 0 })
  const result = resultOf(i)
  const ended = i.status === 'completed'
  const started = i.running_at !== undefined
  return (
    <Section title="Lifecycle" count={ended ? <>completed in <b><Elapsed from={i.created_at} to={i.completed_at} /></b></> : <>for <b><Elapsed from={i.created_at} /></b> so far</>}>
      <ol class="lifeline">
        <li><i /><b>Created</b><Time at={i.created_at} /><span class="muted">{origin(i)}</span></li>
        {i.scheduled_start_at && i.status !== 'scheduled' && <li><i /><b>Due</b><Time at={i.scheduled_start_at} /></li>}
        {(started || i.status === 'pending') && <li class="between"><i />{started ? 'Waited' : 'Has waited'} for <b><Elapsed from={dueAt(i)} to={i.running_at} /></b><AverageOf value={queue.data?.average_wait} id={i.vqueue_id!} /></li>}
        {started && <li><i /><b>Started</b><Time at={i.running_at} />{(i.retry_count ?? 0) > 1 && <span class="muted">{plural(i.retry_count!, 'attempt')}</span>}</li>}
        {started && ended && <li class="between"><i />Took <b><Elapsed from={i.running_at} to={i.completed_at} /></b><AverageOf value={queue.data?.average_run} id={i.vqueue_id!} /></li>}
        <li class={statusLook(i.status, result).tone}><i /><Status status={i.status} result={result} />
          {i.status === 'backing-off' && i.next_retry_at ? <span class="muted">next attempt <Time at={i.next_retry_at} /></span>
            : i.status === 'scheduled' ? <span class="muted">starts <Time at={i.scheduled_start_at} /></span>
              : ended ? <Time at={i.completed_at} /> : i.status === 'running' || i.status === 'pending' ? null : <span class="muted">since <Time at={i.modified_at} /></span>}
        </li>
        {i.purge_at && <li class="goal"><i /><span class="muted">Purged</span><Time at={i.purge_at} /></li>}
      </ol>
    </Section>
  )
}

function Details({ i }: { i: Invocation }) {
  return (
    <Section title="Details">
      <Facts rows={[
        ['Type', typeName(i.target_service_ty)],
        ['Journal', plural(i.journal_size, 'entry', 'entries')],
        i.pinned_deployment_id ? ['Deployment', <DeploymentID id={i.pinned_deployment_id} />] : null,
        i.last_attempt_server ? ['SDK', <span class="mono">{i.last_attempt_server}</span>] : null,
        i.target_service_ty !== 'service' ? [i.target_service_ty === 'workflow' ? 'Workflow id' : 'Object', <a href={objectOf(i)}><bdi>{i.target_service_key}</bdi></a>] : null,
        i.invoked_by_id ? ['Invoked by', <InvocationID id={i.invoked_by_id} />] : null,
        i.idempotency_key ? ['Idempotency key', <span class="mono wrap"><bdi>{i.idempotency_key}</bdi></span>] : null,
        i.scope ? ['Scope', <Pill>{i.scope}</Pill>] : null,
        i.limit_key ? ['Limit key', <Pill>{i.limit_key}</Pill>] : null,
        i.vqueue_id && i.scope ? ['Queue', <ID id={i.vqueue_id} link={href('/flow-control/queues', { id: i.vqueue_id })} />] : null,
        i.last_pause?.attempts && i.status === 'paused' ? ['Failed attempts', formatCount(i.last_pause.attempts)] : null,
        ['Last change', <Time at={i.modified_at} />],
      ]} />
    </Section>
  )
}

/** A bundle is what the page shows, as a file that can be opened without the server. */
export interface BundleFile extends Recorded {
  kind: 'invocation-bundle'
  version: 1
  exported_at: string
  invocation: Invocation
  events: JournalEvent[]
  explain?: Explain | undefined
}

/** A bundle has payloads of up to this many bytes, besides those that entries contain. */
const bundledPayloads = 64 << 20

async function exportBundle(invocation: Invocation, events: JournalEvent[], explain: Explain | undefined): Promise<void> {
  try {
    const { journal, payloads, left } = await readWhole(invocation.id, bundledPayloads)
    const bundle: BundleFile = { kind: 'invocation-bundle', version: 1, exported_at: new Date().toISOString(), invocation, journal, payloads, events, explain }
    saveFile(`${invocation.id}.json`, 'application/json', JSON.stringify(bundle, null, 1))
    toast('ok', `${formatCount(journal.length)} journal entries exported${left > 0 ? `, without the ${plural(left, 'payload')} beyond ${formatBytes(bundledPayloads)}` : ''}.`)
  } catch (err) {
    toastError(err, 'The export failed')
  }
}
