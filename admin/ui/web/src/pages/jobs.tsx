// Jobs: operations on many invocations that the server carries out.

import { get, request } from '../api/client.ts'
import type { Job } from '../api/types.ts'
import { operations, type Operation } from '../actions.tsx'
import { formatCount } from '../lib/format.ts'
import { refreshAll } from '../live.ts'
import { optional, useResource } from '../resource.ts'
import { href, segment, type Match } from '../router.ts'
import { Button, Elapsed, Empty, Facts, ID, Loaded, PageHead, Section, Skeleton, Status, Time } from '../ui/basic.tsx'
import { ask, toast } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'

const titleOf = (j: Job): string => operations[j.operation as Operation]?.title ?? j.operation
const ended = (j: Job): boolean => !/^(running|pending|queued|stopping)$/.test(j.state)
const failedOf = (j: Job): number => j.failed

export function Jobs({ params }: { params: Match }) {
  return params.id ? <One id={params.id} /> : <List />
}

function List() {
  const jobs = useResource('jobs', (s) => optional('/jobs', () => get<{ jobs: Job[] }>('/jobs', s)), { every: 2000, topics: ['jobs'] })
  return (
    <>
      <PageHead title="Jobs" summary="Operations on many invocations. They run on the server and continue after this page is closed." />
      <Loaded of={jobs} what="The jobs could not be listed">{(j) => j === null || j.jobs.length === 0 ? (
        <Empty title={j === null ? 'This server has no jobs' : 'No jobs'} icon="jobs"><p>{j === null ? 'Operations on selected invocations are executed immediately.' : <>Filter <a href={href('/invocations')}>invocations</a> and choose an action for all that match.</>}</p></Empty>
      ) : (
        <Table label="Jobs" rows={j.jobs} keyOf={(o) => o.id} hrefOf={(o) => href(`/jobs/${segment(o.id)}`)} columns={[
          { id: 'state', title: 'State', class: 'fit', cell: (o) => <JobState job={o} /> },
          { id: 'op', title: 'Operation', class: 'fit', cell: (o) => <a class="strong" href={href(`/jobs/${segment(o.id)}`)}>{titleOf(o)}</a> },
          { id: 'of', title: 'Invocations', class: 'grow cut', cell: (o) => <span class="cut" title={filterText(o)}><bdi>{filterText(o)}</bdi></span> },
          { id: 'progress', title: 'Progress', cell: (o) => <Progress job={o} /> },
          { id: 'failed', title: 'Failed', class: 'num fit', cell: (o) => (failedOf(o) > 0 ? <b class="bad-text">{formatCount(failedOf(o))}</b> : <span class="faint">0</span>) },
          { id: 'created', title: 'Started', class: 'num fit', cell: (o) => <Time at={o.created_at} /> },
          { id: 'id', title: 'Id', class: 'c-idcol', cell: (o) => <ID id={o.id} /> },
        ]} />
      )}</Loaded>
    </>
  )
}

/** Which invocations a job acts on. */
function filterText(j: Job): string {
  const filters = Object.entries(j.filter ?? {})
  return filters.length === 0 ? `${formatCount(j.matched)} selected` : filters.map(([name, values]) => `${name.replaceAll('_', ' ')} ${values.join(' or ')}`).join(', ')
}

function JobState({ job }: { job: Job }) {
  return <Status status={job.state === 'completed' || job.state === 'done' ? (failedOf(job) > 0 ? 'failed' : 'done') : job.state} />
}

/** A running job with a filter is still searching: how many remain is an estimate, or unknown. */
function Progress({ job }: { job: Job }) {
  const searching = !ended(job) && Object.keys(job.filter ?? {}).length > 0
  const all = searching ? Math.max(job.total ?? 0, job.matched) : job.matched
  const done = job.done + job.failed + (job.skipped ?? 0)
  if (searching && job.total === undefined) return <span class="num">{formatCount(done)} so far</span>
  return <span class="usage"><span class="usage-bar" aria-hidden="true"><i class={ended(job) && job.failed === 0 ? 'done' : ''} style={{ width: `${all === 0 ? (ended(job) ? 100 : 0) : Math.min(100, (done / all) * 100)}%` }} /></span><span class="num">{formatCount(done)}{all > 0 ? ` of ${searching ? 'about ' : ''}${formatCount(all)}` : ''}</span></span>
}

function One({ id }: { id: string }) {
  const job = useResource(`job:${id}`, (s) => get<Job>(`/jobs/${segment(id)}`, s), { every: 1000, topics: ['jobs'] })
  return (
    <>
      <div class="crumbs"><a href={href('/jobs')}>Jobs</a></div>
      <Loaded of={job} what="The job could not be read">{(j) => {
        const samples = j.failures ?? []
        return (
          <>
            <PageHead title={titleOf(j)} summary={<JobState job={j} />}>
              {!ended(j) && <Button icon="stop" needs="operate" onClick={() => void ask({ title: 'Stop this job?', action: 'Stop', body: <p>Changes that were made are kept; the remaining invocations are not changed.</p> }, async () => {
                await request(`/jobs/${segment(id)}`, { method: 'DELETE' })
                toast('ok', 'The job stops')
                refreshAll()
              })}>Stop</Button>}
            </PageHead>
            <Section><Progress job={j} /></Section>
            <Section><Facts rows={[
              ['Id', <span class="mono">{j.id}</span>], ['Started', <Time at={j.created_at} />], ended(j) ? ['Ended', <Time at={j.modified_at} />] : null, ['Duration', <Elapsed from={j.created_at} to={ended(j) ? j.modified_at : undefined} />],
              ['Failed', formatCount(failedOf(j))], j.skipped ? ['Skipped', `${formatCount(j.skipped)}, deleted before their turn`] : null, j.reason ? ['Reason', j.reason] : null, j.by ? ['By', j.by] : null, j.deployment ? ['Deployment', <span class="mono">{j.deployment}</span>] : null,
              j.error ? ['Error', <span class="bad-text">{j.error}</span>] : null,
              ['Invocations', j.filter ? <a class="wrap" href={href('/invocations', new URLSearchParams(Object.entries(j.filter).flatMap(([name, values]) => values.map((v) => [name, v]))))}>{filterText(j)}</a> : filterText(j)],
            ]} /></Section>
            {samples.length > 0 && (
              <Section title="Failed" flush>
                <Table label="Failed" rows={samples} keyOf={(f) => f.invocation_id} hrefOf={(f) => href(`/invocations/${segment(f.invocation_id)}`)} columns={[
                  { id: 'id', title: 'Invocation', class: 'c-idcol', cell: (f) => <ID id={f.invocation_id} link={href(`/invocations/${segment(f.invocation_id)}`)} /> },
                  { id: 'error', title: 'Error', class: 'grow', cell: (f) => f.error },
                ]} />
              </Section>
            )}
          </>
        )
      }}</Loaded>
      {!job.data && !job.error && <Skeleton rows={4} />}
    </>
  )
}
