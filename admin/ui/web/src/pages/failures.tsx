// Work that fails, grouped by what fails and how.

import { useEffect, useState } from 'preact/hooks'
import { batch } from '../actions.tsx'
import { APIError, get, request, withQuery } from '../api/client.ts'
import type { BlockedPartition, DeadLetterCount, FailureGroup, InvocationPage, Service } from '../api/types.ts'
import { formatCompact, formatCount, plural } from '../lib/format.ts'
import { blockReasons } from '../lib/subscriptions.ts'
import { refreshAll } from '../live.ts'
import { optional, useResource } from '../resource.ts'
import { href, navigate, query, segment, type Match } from '../router.ts'
import { withMore } from '../more.ts'
import { FormButtons, useSubmission } from '../ui/form.tsx'
import { Button, Empty, ErrorCodeHint, Facts, Field, InvocationID, Loaded, PageHead, Pill, Section, Skeleton, Status, Tabs, Target, Time, resultOf, statusLook } from '../ui/basic.tsx'
import { Icon } from '../ui/icons.tsx'
import { DialogFrame, openDialog, toast, toastError } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'

export function Failures({ params }: { params: Match }) {
  return params.id ? <Group id={params.id} /> : <List />
}

function List() {
  const muted = query.value.get('muted') === 'true'
  const cursor = query.value.get('cursor') ?? undefined
  const failures = useResource(`failures:${muted}:${cursor ?? ''}`, (s) => optional('/failures', () => get<FailurePage>(withQuery('/failures', { limit: pageSize, muted, cursor }), s)), { every: 5000, topics: ['failures'], keep: true })
  // Servers without groups: the invocations that fail now.
  const failing = useResource(failures.data === null ? 'failing' : undefined, (s) => get<InvocationPage>('/invocations?status=backing-off&status=paused&limit=100', s), { every: 3000, topics: ['invocations'] })
  return (
    <>
      <PageHead title="Failures" summary="Invocations that retry, are paused or ended with an error, grouped by service, handler and message" />
      {failures.data !== null && (
        <Tabs label="Failures" tabs={[
          { title: 'Need attention', href: href('/failures'), on: !muted },
          { title: 'Muted', href: href('/failures', { muted: 'true' }), on: muted },
        ]} />
      )}
      {!muted && <Blocked list={failures.data?.blocked_topic_partitions ?? []} />}
      {!muted && <Undelivered list={failures.data?.dead_letters ?? []} />}
      {failures.data === null
        ? <Loaded of={failing} what="The failures could not be read">{(page) => page.invocations.length === 0 ? <AllWell /> : (
          <Table label="Failing invocations" rows={page.invocations} keyOf={(i) => i.id} hrefOf={(i) => href(`/invocations/${segment(i.id)}`)} columns={[
            { id: 'status', title: 'Status', class: 'fit', cell: (i) => <Status status={i.status} result={resultOf(i)} note={i.retry_count ? `×${i.retry_count}` : undefined} /> },
            { id: 'target', title: 'Target', cell: (i) => <Target service={i.target_service_name} name={i.target_service_ty === 'service' ? undefined : i.target_service_key ?? ''} handler={i.target_handler_name} link={href(`/invocations/${segment(i.id)}`)} /> },
            { id: 'failure', title: 'Failure', class: 'grow cut', cell: (i) => <span class="cut bad-text" dir="auto">{i.last_failure?.split('\n')[0]}</span> },
            { id: 'created', title: 'Created', class: 'fit num', cell: (i) => <Time at={i.created_at} /> },
          ]} />
        )}</Loaded>
        : <Loaded of={failures} what="The failures could not be read">{(f) => f === null ? <Skeleton /> : f.groups.length === 0 ? (muted ? <Empty title="No muted failures" icon="mute"><p>Mute a group that is known and needs no attention: it is no longer counted, and listed here.</p></Empty> : <AllWell />) : (
          <>
            <FailureTable groups={f.groups} />
            {(cursor !== undefined || f.next_cursor) && (
              <footer class="pager"><span class="grow" />
                {cursor !== undefined && <Button onClick={() => navigate(href('/failures', muted ? { muted: 'true' } : {}))}>First</Button>}
                {f.next_cursor && <Button icon="right" onClick={() => navigate(href('/failures', { ...(muted ? { muted: 'true' } : {}), cursor: f.next_cursor! }))}>Next</Button>}
              </footer>
            )}
          </>
        )}</Loaded>}
    </>
  )
}

interface FailurePage {
  groups: FailureGroup[]
  next_cursor?: string
  blocked_topic_partitions?: BlockedPartition[]
  dead_letters?: DeadLetterCount[]
}

const pageSize = 100

function AllWell() {
  return <Empty title="No failures" icon="check"><p>No invocation retries, is paused or ended with an error that is still kept. Muted groups are not shown here.</p></Empty>
}

/** Records of topics that cannot be delivered, and what they block. */
function Blocked({ list }: { list: BlockedPartition[] }) {
  if (list.length === 0) return null
  const link = (b: BlockedPartition): string => href(`/subscriptions/${segment(b.subscription_id)}`)
  return (
    <Section title="Blocked topic partitions" count={formatCount(list.length)} flush>
      <Table label="Blocked topic partitions" rows={list} keyOf={(b) => `${b.subscription_id}/${b.topic}/${b.partition}`} hrefOf={link} columns={[
        { id: 'partition', title: 'Topic partition', class: 'fit', cell: (b) => <a class="strong" href={link(b)}><bdi>{b.topic}/{b.partition}</bdi></a> },
        { id: 'where', title: 'Handler', class: 'fit', cell: (b) => <Target service={b.service} handler={b.handler} /> },
        { id: 'reason', title: 'Cause', class: 'grow cut', cell: (b) => <span class="cut" dir="auto"><Pill tone="bad">{b.reason.replaceAll('_', ' ')}</Pill> {blockReasons[b.reason]?.[0] ?? b.message}</span> },
        { id: 'lag', title: 'Waiting', class: 'num fit', cell: (b) => (b.lag_records === undefined ? '–' : formatCount(b.lag_records)) },
        { id: 'since', title: 'Since', class: 'num fit', cell: (b) => <Time at={b.since} /> },
      ]} />
    </Section>
  )
}

/** Subscriptions with records that could not be delivered and that the server keeps. */
function Undelivered({ list }: { list: DeadLetterCount[] }) {
  if (list.length === 0) return null
  const link = (d: DeadLetterCount): string => href(`/subscriptions/${segment(d.subscription_id)}`)
  return (
    <Section title="Dead letters of subscriptions" count={formatCount(list.length)} flush>
      <Table label="Dead letters of subscriptions" rows={list} keyOf={(d) => d.subscription_id} hrefOf={link} columns={[
        { id: 'source', title: 'Source', class: 'grow cut', cell: (d) => <a class="strong" href={link(d)}><bdi>{d.source}</bdi></a> },
        { id: 'where', title: 'Handler', class: 'fit', cell: (d) => <Target service={d.service} handler={d.handler} /> },
        { id: 'records', title: 'Records', class: 'num fit', cell: (d) => formatCount(d.records) },
      ]} />
    </Section>
  )
}

async function mark(g: FailureGroup, body: { muted?: boolean; note?: string }): Promise<void> {
  await request(`/failures/${segment(g.id)}`, { method: 'PATCH', body })
  refreshAll()
}

function editNote(g: FailureGroup, mute: boolean): void {
  void openDialog(mute ? 'Mute' : 'Note', (close) => <NoteForm group={g} mute={mute} close={close} />)
}

/** Changes the note of a group, and mutes it. */
function NoteForm({ group: g, mute, close }: { group: FailureGroup; mute: boolean; close: () => void }) {
  const [note, setNote] = useState(g.note ?? '')
  const form = useSubmission(close, async () => {
    await mark(g, { note: note.trim(), ...(mute ? { muted: true } : {}) })
    toast('ok', mute ? 'The failure group was muted' : 'The note was saved')
  })
  return (
    <form onSubmit={form.submit}>
      <DialogFrame title={mute ? 'Mute this failure group?' : 'Note'} close={close} actions={<FormButtons close={close} action={mute ? 'Mute' : 'Save'} busy={form.busy} disabled={!mute && note === (g.note ?? '')} />}>
        {mute && <p>It is no longer counted as a failure that needs attention, for all users. Its invocations are not changed: they are still retried, or stay paused.</p>}
        <Field label="Note" hint="What is known about it, for other operators." error={form.error?.message}><textarea class="input" rows={4} maxLength={2000} autofocus value={note} onInput={(e) => setNote(e.currentTarget.value)} /></Field>
      </DialogFrame>
    </form>
  )
}

export function FailureTable({ groups }: { groups: FailureGroup[] }) {
  return (
    <Table label="Failures" rows={groups} keyOf={(g) => g.id} hrefOf={(g) => href(`/failures/${segment(g.id)}`)} columns={[
      { id: 'count', title: 'Count', class: 'fit num', cell: (g) => <b class="bad-text">{formatCompact(g.count)}</b> },
      { id: 'where', title: 'Handler', class: 'fit', cell: (g) => <Target service={g.service} handler={g.handler} link={href(`/failures/${segment(g.id)}`)} /> },
      { id: 'message', title: 'Failure', class: 'fill', cell: (g) => <span class="cut" dir="auto" title={g.note}>{g.muted && <Pill>muted</Pill>}{g.error_code && <Pill tone="bad">{g.error_code}</Pill>} {g.message || <span class="faint">no message</span>}{g.note && <span class="muted"> · {g.note.split('\n')[0]}</span>}</span> },
      { id: 'states', title: 'Now', class: 'fit', cell: (g) => <span class="now-states">{Object.entries(g.by_status ?? {}).filter(([, n]) => n > 0).map(([s, n]) => <Status key={s} status={s} result={s === 'completed' ? 'failure' : undefined} note={formatCompact(n)} />)}</span> },
      { id: 'keys', title: 'Keys', class: 'fit num', cell: (g) => (g.keys ? formatCount(g.keys) : <span class="faint">–</span>) },
      { id: 'first', title: 'First', class: 'fit num', cell: (g) => <Time at={g.first_seen} /> },
      { id: 'last', title: 'Last', class: 'fit num', cell: (g) => <Time at={g.last_seen} /> },
    ]} />
  )
}

function Group({ id }: { id: string }) {
  const group = useResource(`failure:${id}`, (s) => get<FailureGroup>(`/failures/${segment(id)}`, s), { every: 5000, topics: ['failures'] })
  const gone = group.error instanceof APIError && group.error.status === 404
  // The number of failures beside the navigation is read rarely.
  useEffect(() => {
    if (gone) refreshAll()
  }, [gone])
  const name = group.data?.service
  const service = useResource(name && `service:${name}`, (s) => get<Service>(`/services/${segment(name!)}`, s), { every: 10_000, topics: ['deployments'] })
  const members = useResource(gone ? undefined : `members:${id}`, (s) => get<InvocationPage>(`/invocations?failure_group=${segment(id)}&limit=50`, s), { every: 5000, topics: ['invocations'] })
  return (
    <>
      <div class="crumbs"><a href={href('/failures')}>Failures</a></div>
      {gone && (
        <Empty title="Nothing fails in this way now" icon="check">
          <p>The invocations of this group have continued, have ended differently, or have been purged. <a href={href('/failures')}>Other failures</a></p>
        </Empty>
      )}
      {!gone && <Loaded of={group} what="The failure group could not be read">{(g) => {
        const filters = [{ name: 'failure_group' as const, value: id }]
        const sample = members.data?.invocations.slice(0, 5).map((i) => i.target) ?? []
        const outdated = service.data !== undefined && (g.deployments ?? []).length > 0 && !g.deployments!.includes(service.data.deployment_id)
        const retrying = (g.by_status?.['backing-off'] ?? 0) + (g.by_status?.paused ?? 0)
        return (
          <>
            <PageHead title={<span dir="auto">{g.message}</span>} summary={<>{g.service}/{g.handler} · {plural(g.count, 'invocation')}{g.keys ? ` · ${plural(g.keys, 'key')}` : ''}</>}>
              {retrying > 0 && <Button kind="primary" icon="play" needs="operate" onClick={() => batch('resume', { filters, count: retrying, sample, outdated })}>Resume all</Button>}
              <Button icon="stop" needs="operate" onClick={() => batch('cancel', { filters, count: retrying, sample })} disabled={retrying === 0}>Cancel all</Button>
              <Button icon="restart" needs="operate" onClick={() => batch('restart-as-new', { filters, count: g.by_status?.completed, sample })} disabled={(g.by_status?.completed ?? 0) === 0}>Restart failed</Button>
              {g.muted
                ? <Button icon="alert" needs="operate" onClick={() => { mark(g, { muted: false }).then(() => toast('ok', 'The failure group needs attention again'), (err: unknown) => toastError(err)) }}>Unmute</Button>
                : <Button icon="mute" needs="operate" onClick={() => editNote(g, true)}>Mute</Button>}
              <Button icon="edit" needs="operate" onClick={() => editNote(g, false)}>Note</Button>
              <a class="button plain" href={href('/invocations', { failure_group: id })}><Icon name="filter" /><span>As a list</span></a>
            </PageHead>
            {(g.muted || g.note) && (
              <div class="note-card" role="note">
                <p class="muted">{g.muted && <Pill>muted</Pill>} by {g.marked_by}, <Time at={g.marked_at} /></p>
                {g.note && <p class="note-text" dir="auto">{g.note}</p>}
              </div>
            )}
            {g.error_code && <ErrorCodeHint code={g.error_code} />}
            {retrying > 0 && (
              <div class="fix-card">
                {outdated
                  ? <p><b>A newer deployment serves {g.service}.</b> If it has the fix, resume all on the latest deployment. They continue from their journals; completed steps do not run again.</p>
                  : <p><b>To fix it:</b> correct the handler, start it at another address, register that, then resume all on the latest deployment. They continue from their journals; completed steps do not run again.</p>}
                <Button icon="plus" needs="deploy" onClick={() => withMore((m) => m.register())}>Register a fix</Button>
              </div>
            )}
            <Section><Facts rows={[
              ['First seen', <Time at={g.first_seen} />], ['Last seen', <Time at={g.last_seen} />],
              ...Object.entries(g.by_status ?? {}).filter(([, n]) => n > 0).map(([s, n]) => [statusLook(s, 'failure').title, formatCount(n)] as [string, string]),
              g.code !== undefined ? ['Code', String(g.code)] : null,
              g.deployments && g.deployments.length > 0 ? ['Deployments', <span class="wrap">{g.deployments.map((d) => <a key={d} class="mono" href={href(`/deployments/${segment(d)}`)}>{d} </a>)}</span>] : null,
              g.sample_invocation_id ? ['Sample', <InvocationID id={g.sample_invocation_id} />] : null,
            ]} /></Section>
          </>
        )
      }}</Loaded>}
      {!gone && <Loaded of={members} what="The invocations could not be listed">{(page) => page.invocations.length === 0 ? <p class="journal-empty">All invocations of this group have been purged.</p> : (
        <Table label="Members" rows={page.invocations} keyOf={(i) => i.id} hrefOf={(i) => href(`/invocations/${segment(i.id)}`)} columns={[
          { id: 'status', title: 'Status', class: 'fit', cell: (i) => <Status status={i.status} result={resultOf(i)} note={i.retry_count ? `×${i.retry_count}` : undefined} /> },
          { id: 'target', title: 'Target', cell: (i) => <Target service={i.target_service_name} name={i.target_service_ty === 'service' ? undefined : i.target_service_key ?? ''} handler={i.target_handler_name} link={href(`/invocations/${segment(i.id)}`)} /> },
          { id: 'id', title: 'Id', class: 'c-idcol', cell: (i) => <InvocationID id={i.id} /> },
          { id: 'failure', title: 'Failure', class: 'grow cut', cell: (i) => <span class="cut" dir="auto">{(i.completion_failure ?? i.last_failure ?? '').split('\n')[0]}</span> },
          { id: 'created', title: 'Created', class: 'fit num', cell: (i) => <Time at={i.created_at} /> },
        ]} />
      )}</Loaded>}
    </>
  )
}
