// One service: handlers, invoke, settings.

import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { APIError, get, request, withQuery } from '../api/client.ts'
import type { Counts, Deployment, Handler, Options, RetryPolicy, Service, Stats, Version } from '../api/types.ts'
import { saveFile } from '../lib/save.ts'
import { formatCompact, plural, shellQuote } from '../lib/format.ts'
import { parseDuration } from '../lib/time.ts'
import { refreshAll } from '../live.ts'
import { optional, useResource } from '../resource.ts'
import { href, query, segment, setQuery, type Match } from '../router.ts'
import { identity, refusalOf, roles } from '../session.ts'
import { Button, Command, DeploymentID, Elapsed, Empty, ErrorBox, Facts, Field, InvocationID, PageHead, Pill, Section, Segmented, Skeleton, Stale, now, typeName } from '../ui/basic.tsx'
import { Editor } from '../ui/editor.tsx'
import { DialogFrame, openDialog, toast } from '../ui/overlay.tsx'
import { PayloadView } from '../ui/payload.tsx'
import { Table } from '../ui/table.tsx'
import { fieldsOf, propertiesOf, sampleOf, type FormField } from '../lib/schema.ts'
import { parseHeaders } from '../lib/headers.ts'
import { validJSON, withMember } from '../lib/json.ts'
import { Notices, countsOf } from './common.tsx'
import { Charts, marksOf } from './overview.tsx'

export function ServicePage({ params }: { params: Match }) {
  const name = params.service!
  const service = useResource(`service:${name}`, (s) => get<Service>(`/services/${segment(name)}`, s), { every: 10_000, topics: ['deployments'] })
  const counts = useResource('counts', (s) => optional('/invocations/counts', () => get<Counts>('/invocations/counts', s)), { every: 5000, atLeast: 2000, topics: ['overview'] })
  const stats = useResource(`stats:service:${name}`, (s) => optional('/stats', () => get<Stats>(withQuery('/stats', { range: '1h', step: '30s', service: name }), s)), { every: 10_000, atLeast: 5000, topics: ['overview'], keep: true })
  // To the minute, so that the reads of a minute are the same.
  const since = new Date(Math.floor((now.value - 3_600_000) / 60_000) * 60_000).toISOString()
  const hourly = useResource(`counts:service:${name}:${since}`, (s) => optional('/invocations/counts', () => get<Counts>(withQuery('/invocations/counts', { service: name, created_after: since }), s)), { every: 10_000, atLeast: 5000, topics: ['overview'], keep: true })
  const deployments = useResource('deployments', (s) => get<{ deployments: Deployment[] }>('/deployments', s), { every: 10_000, topics: ['deployments'] })
  const invoke = query.value.get('invoke')
  if (!service.data) {
    if (service.error instanceof APIError && service.error.status === 404) return <Empty title="This service does not exist" icon="services" page><p class="mono">{name}</p><p><a href={href('/services')}>All services</a></p></Empty>
    return service.error ? <ErrorBox what="The service could not be read" error={service.error} retry={service.reload} /> : <Skeleton rows={10} />
  }
  const s = service.data
  const c = countsOf(counts.data, name)
  const handler = s.handlers.find((h) => h.name === invoke)
  return (
    <>
      <div class="crumbs"><a href={href('/services')}>Services</a></div>
      <PageHead title={s.name} summary={<>{typeName(s.ty)} · revision {s.revision} · {plural(s.handlers.length, 'handler')}{s.documentation ? ` · ${s.documentation.split('\n')[0]}` : ''}</>}>
        {s.ty !== 'Service' && <a class="button plain" href={href('/objects', { service: name })}><span>{s.ty === 'Workflow' ? 'Workflow runs' : 'Objects'}</span></a>}
        <a class="button plain" href={href('/invocations', { service: name })}><span>Invocations{c.unfinished > 0 ? ` (${formatCompact(c.unfinished)} unfinished)` : ''}</span></a>
        <Button icon="edit" needs="deploy" onClick={() => void openDialog('Settings', (close) => <EditSettings service={s} close={close} />, true)}>Settings</Button>
      </PageHead>
      <Stale error={service.error} at={service.at} retry={service.reload} />
      <Notices list={s.info} />
      {stats.data && <Charts stats={stats.data} marks={marksOf(deployments.data?.deployments.filter((d) => d.services.some((o) => o.name === name)))} />}
      <div class="split service-parts">
        <Section title="Handlers" flush>
          <Table label="Handlers" rows={s.handlers} keyOf={(h) => h.name} hrefOf={(h) => href(`/services/${segment(name)}`, { invoke: h.name })} tone={(h) => (handler === h ? 'on' : undefined)} columns={[
            { id: 'name', title: 'Handler', class: 'handler-name', cell: (h) => <HandlerName h={h} on={handler === h} service={name} /> },
            { id: 'io', title: 'Input → output', class: 'handler-io', cell: (h) => <span class="muted" title={`${h.input_description} → ${h.output_description}`}>{shortType(h.input_description)} → {shortType(h.output_description)}</span> },
            { id: 'hour', title: <span title="Invocations that were created in the last hour and are kept">Last hour</span>, class: 'num fit', cell: (h) => <Amount n={hourly.data ? outcomesOf(hourly.data, name, h.name).all : undefined} link={{ service: name, handler: h.name, created_after: since }} /> },
            { id: 'failed', title: 'Failed', class: 'num fit', cell: (h) => <Amount n={hourly.data ? outcomesOf(hourly.data, name, h.name).failed : undefined} tone="bad-text" link={{ service: name, handler: h.name, created_after: since, result: 'failure' }} /> },
            { id: 'failing', title: 'Failing now', class: 'num fit', cell: (h) => <Amount n={counts.data ? outcomesOf(counts.data, name, h.name).failing : undefined} tone="warn-text" link={{ service: name, handler: h.name, status: ['backing-off', 'paused'] }} /> },
            { id: 'open', title: 'Unfinished', class: 'num fit', cell: (h) => <Amount n={counts.data ? outcomesOf(counts.data, name, h.name).unfinished : undefined} link={{ service: name, handler: h.name, status: ['pending', 'scheduled', 'ready', 'running', 'backing-off', 'suspended', 'paused'] }} /> },
          ]} />
        </Section>
        {handler
          ? <Invoke key={handler.name} service={s} handler={handler} />
          : (
            <Section title="Settings" actions={refusalOf('deploy') ? undefined : <button type="button" class="link" onClick={() => void openDialog('Settings', (close) => <EditSettings service={s} close={close} />, true)}>Edit</button>}>
              <Facts rows={[
                option(s, 'public', 'Access', s.public ? 'public: callable through the ingress' : 'private: callable by other handlers only', (v) => (v ? 'public' : 'private')),
                ['Deployment', <DeploymentID id={s.deployment_id} />],
                option(s, 'idempotency_retention', 'Idempotency retention', s.idempotency_retention),
                s.workflow_completion_retention ? option(s, 'workflow_completion_retention', 'Workflow retention', s.workflow_completion_retention) : null,
                option(s, 'journal_retention', 'Journal retention', s.journal_retention ?? 'none'),
                option(s, 'inactivity_timeout', 'Inactivity timeout', s.inactivity_timeout),
                option(s, 'abort_timeout', 'Abort timeout', s.abort_timeout),
                option(s, 'enable_lazy_state', 'Lazy state', s.enable_lazy_state ? 'on' : 'off', (v) => (v ? 'on' : 'off')),
                option(s, 'retry_policy', 'Retries', retryText(s.retry_policy), (v) => retryText(v as RetryPolicy)),
              ]} />
              {s.server_defaults && <p class="muted origin-note">A dot marks what the configuration of the server determines; the rest is set by the code of the service.</p>}
              {s.handlers.some((h) => overrides(h).length > 0) && (
                <>
                  <h3>Overridden by handlers</h3>
                  <Facts rows={s.handlers.filter((h) => overrides(h).length > 0).map((h) => [h.name, overrides(h).join(', ')])} />
                </>
              )}
            </Section>
          )}
      </div>
    </>
  )
}

function outcomesOf(counts: Counts, service: string, handler: string): ReturnType<typeof countsOf> & { all: number } {
  const c = countsOf({ ...counts, by_service: (counts.by_service ?? []).filter((o) => o.handler === handler) }, service)
  return { ...c, all: c.unfinished + c.succeeded + c.failed + c.ended }
}

/** What callers of a service must present, which this page does not send by itself; undefined if nothing. */
export function ingressNeeds(s: Service): 'token' | 'jwt' | 'mtls' | undefined {
  const strict = identity.value?.security_mode === 'strict'
  return s.ingress_auth && s.ingress_auth !== 'none' ? s.ingress_auth : strict ? 'token' : undefined
}

function missingCredentials(s: Service): string | undefined {
  const required = ingressNeeds(s)
  if (!required) return undefined
  if (required === 'mtls') return 'Callers need a client certificate.'
  return `Callers need a token ${required === 'jwt' ? 'of the identity provider' : `with the role ${roles.invoke}`}. Your login is not sent to the ingress: add “authorization: Bearer …” under Options, Headers.`
}

function HandlerName({ h, on, service }: { h: Handler; on: boolean; service: string }) {
  return (
    <>
      <a class="mono strong" href={href(`/services/${segment(service)}`, on ? {} : { invoke: h.name })} aria-current={on ? 'true' : undefined} title={on ? 'Close the form' : `Invoke ${h.name}`}>{h.name}</a>
      {h.ty && <> <Pill>{h.ty.toLowerCase()}</Pill></>}
      {!h.public && <Pill title="not callable through the ingress">private</Pill>}
      {h.documentation && <p class="muted handler-doc">{h.documentation}</p>}
      <Notices list={h.info} />
    </>
  )
}

/** A number that leads to its list. */
function Amount({ n, link, tone }: { n: number | undefined; link: Record<string, string | string[]>; tone?: string }) {
  if (n === undefined) return <span class="faint">–</span>
  if (n === 0) return <span class="faint">0</span>
  const params = new URLSearchParams(Object.entries(link).flatMap(([k, v]) => (Array.isArray(v) ? v.map((o) => [k, o]) : [[k, v]])))
  return <a class={tone ?? ''} href={href('/invocations', params)}>{formatCompact(n)}</a>
}

type OptionName = Exclude<keyof NonNullable<Service['overridden']>, undefined>

/** A setting, and where it comes from. */
function option(s: Service, name: OptionName, title: string, value: string | undefined, format: (v: unknown) => string = String): [string, ComponentChildren] {
  const was = s.overridden?.[name]
  if (was !== undefined) return [title, <>{value} <Pill tone="accent" title="An operator has changed it on this revision. Registering the service again restores the setting of its code.">changed, was {format(was)}</Pill></>]
  return [title, s.server_defaults?.includes(name) ? <span class="from-server" title="from the configuration of the server">{value}</span> : value]
}

/** What a handler takes or returns, in few letters; of 'one of ["none", "value of …"]' the value first. */
function shortType(text: string): string {
  const one = (t: string): string => t.replace(/^value of content-type /, '').replace('application/json', 'JSON').replace(/^none$/, 'nothing')
  const choices = /^one of \[(.*)\]$/.exec(text)?.[1]?.split(', ').map((t) => one(t.replaceAll('"', '')))
  return choices ? choices.reverse().join(' or ') : one(text)
}

function retryText(p: RetryPolicy | undefined): string {
  if (!p) return ''
  return `${p.max_attempts ?? 'unlimited'} attempts, ${p.initial_interval} × ${p.exponentiation_factor} up to ${p.max_interval}, then ${p.on_max_attempts === 'Kill' ? 'kill' : 'pause'}`
}

function overrides(h: Handler): string[] {
  const out: string[] = []
  if (h.idempotency_retention) out.push(`idempotency ${h.idempotency_retention}`)
  if (h.journal_retention) out.push(`journal ${h.journal_retention}`)
  if (h.inactivity_timeout) out.push(`inactivity ${h.inactivity_timeout}`)
  if (h.abort_timeout) out.push(`abort ${h.abort_timeout}`)
  if (h.enable_lazy_state !== undefined) out.push(`lazy state ${h.enable_lazy_state ? 'on' : 'off'}`)
  const p = h.retry_policy
  if (p?.max_attempts) out.push(`${p.max_attempts} attempts`)
  if (p?.initial_interval) out.push(`first retry after ${p.initial_interval}`)
  if (p?.exponentiation_factor) out.push(`intervals × ${p.exponentiation_factor}`)
  if (p?.max_interval) out.push(`up to ${p.max_interval}`)
  if (p?.on_max_attempts) out.push(`then ${p.on_max_attempts.toLowerCase()}`)
  return out
}

const durations = [
  ['idempotency_retention', 'Idempotency retention', 'How long the result of a call with an idempotency key is kept.'],
  ['workflow_completion_retention', 'Workflow retention', 'How long the result and state of a finished workflow are kept.'],
  ['journal_retention', 'Journal retention', 'How long the journal of a finished invocation is kept.'],
  ['inactivity_timeout', 'Inactivity timeout', 'After this time without messages an attempt is asked to suspend.'],
  ['abort_timeout', 'Abort timeout', 'After this further time it is aborted and retried.'],
] as const

/** Edits the settings of a service; only what was changed is sent. */
function EditSettings({ service: s, close }: { service: Service; close: () => void }) {
  const initial: Record<string, string> = {
    public: String(s.public), enable_lazy_state: String(s.enable_lazy_state ?? false), max_attempts: String(s.retry_policy?.max_attempts ?? ''), initial_interval: s.retry_policy?.initial_interval ?? '',
    max_interval: s.retry_policy?.max_interval ?? '', exponentiation_factor: String(s.retry_policy?.exponentiation_factor ?? ''), on_max_attempts: s.retry_policy?.on_max_attempts ?? 'Pause',
    ...Object.fromEntries(durations.map(([k]) => [k, s[k] ?? ''])),
  }
  const [values, setValues] = useState(initial)
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const set = (k: string, v: string): void => setValues({ ...values, [k]: v })
  const changed = Object.keys(values).filter((k) => values[k] !== initial[k])
  const invalid = [...durations.map(([k]) => k), 'initial_interval', 'max_interval'].filter((k) => values[k] !== initial[k] && parseDuration(values[k] ?? '') === undefined)
  const submit = (e: Event): void => {
    e.preventDefault()
    const body: Options & { retry_policy?: RetryPolicy } = {}
    const retry: RetryPolicy = {}
    for (const k of changed) {
      const v = values[k]!
      if (k === 'public' || k === 'enable_lazy_state') body[k] = v === 'true'
      else if (k === 'max_attempts') retry.max_attempts = v === '' ? null : Number(v)
      else if (k === 'exponentiation_factor') retry.exponentiation_factor = Number(v)
      else if (k === 'initial_interval' || k === 'max_interval' || k === 'on_max_attempts') retry[k] = v
      else body[k as 'abort_timeout'] = v
    }
    if (Object.keys(retry).length > 0) body.retry_policy = retry
    setBusy(true)
    request(`/services/${segment(s.name)}`, { method: 'PATCH', body }).then(() => {
      toast('ok', `The settings of ${s.name} were changed`)
      refreshAll()
      close()
    }, (err: Error) => {
      setBusy(false)
      setError(err.message)
    })
  }
  const announced: Record<string, string> = Object.fromEntries(Object.entries({ ...s.overridden, ...(s.overridden?.retry_policy ?? {}) }).filter(([k]) => k !== 'retry_policy').map(([k, v]) => [k, String(v ?? '')]))
  const diff = (k: string) => {
    if (values[k] !== initial[k]) return <span class="changed">was {initial[k] || 'unset'}</span>
    const was = announced[k]
    return was !== undefined && was !== values[k] ? <span class="changed">changed by an operator. <button type="button" class="link" onClick={() => set(k, was)}>Restore {was || 'unlimited'}</button></span> : undefined
  }
  return (
    <form onSubmit={submit}>
      <DialogFrame title={`Settings of ${s.name}`} close={close} actions={
        <><span class="muted">{changed.length > 0 ? plural(changed.length, 'change') : 'No changes'}</span><span class="grow" /><Button onClick={close}>Close</Button><Button kind="primary" type="submit" busy={busy} disabled={changed.length === 0 || invalid.length > 0}>Save</Button></>
      }>
        <p class="muted">Changes apply to this revision: registering the service again restores the settings of its code.</p>
        <div class="form-grid">
          <Field label="Access" hint={diff('public') ?? 'Public services are callable through the ingress.'}>
            <select class="input" value={values.public} onChange={(e) => set('public', e.currentTarget.value)}><option value="true">public</option><option value="false">private</option></select>
          </Field>
          <Field label="Lazy state" hint={diff('enable_lazy_state') ?? 'State is read on demand instead of being sent with each attempt.'}>
            <select class="input" value={values.enable_lazy_state} onChange={(e) => set('enable_lazy_state', e.currentTarget.value)}><option value="true">on</option><option value="false">off</option></select>
          </Field>
          {durations.filter(([k]) => k !== 'workflow_completion_retention' || s.ty === 'Workflow').map(([k, label, hint]) => (
            <Field key={k} label={label} hint={diff(k) ?? hint} error={invalid.includes(k) ? 'a duration such as 10m or 1 day' : undefined}><input class="input" value={values[k]} onInput={(e) => set(k, e.currentTarget.value)} /></Field>
          ))}
        </div>
        <h3>Retries</h3>
        <div class="form-grid">
          <Field label="Attempts" hint={diff('max_attempts') ?? 'Empty: unlimited.'}><input class="input" type="number" min="1" value={values.max_attempts} onInput={(e) => set('max_attempts', e.currentTarget.value)} /></Field>
          <Field label="Then" hint={diff('on_max_attempts')}><select class="input" value={values.on_max_attempts} onChange={(e) => set('on_max_attempts', e.currentTarget.value)}><option value="Pause">pause</option><option value="Kill">kill</option></select></Field>
          <Field label="First interval" hint={diff('initial_interval')} error={invalid.includes('initial_interval') ? 'a duration' : undefined}><input class="input" value={values.initial_interval} onInput={(e) => set('initial_interval', e.currentTarget.value)} /></Field>
          <Field label="Longest interval" hint={diff('max_interval')} error={invalid.includes('max_interval') ? 'a duration' : undefined}><input class="input" value={values.max_interval} onInput={(e) => set('max_interval', e.currentTarget.value)} /></Field>
          <Field label="Factor" hint={diff('exponentiation_factor')}><input class="input" type="number" step="0.1" min="1" value={values.exponentiation_factor} onInput={(e) => set('exponentiation_factor', e.currentTarget.value)} /></Field>
        </div>
        {error && <p class="dialog-error" role="alert">{error}</p>}
      </DialogFrame>
    </form>
  )
}

interface Answer {
  status: number
  ok: boolean
  id: string | null
  body: Uint8Array
  from: number
  to: number
}

/** Invokes a handler through the ingress, and shows the same as a curl command. */
function Invoke({ service: s, handler: h }: { service: Service; handler: Handler }) {
  const version = useResource('version', (signal) => get<Version>('/version', signal), { every: 0 })
  const keyed = s.ty !== 'Service'
  const [key, setKey] = useState(keyed ? query.value.get('key') ?? 'example' : '')
  const [mode, setMode] = useState<'call' | 'send'>('call')
  const [delay, setDelay] = useState('')
  const [scope, setScope] = useState(query.value.get('scope') ?? '')
  const [limitKey, setLimitKey] = useState('')
  const [idempotency, setIdempotency] = useState('')
  const [headers, setHeaders] = useState('')
  const noInput = h.input_description === 'none' || h.input_description === 'empty'
  const initial = useMemo(() => (noInput ? '' : sampleOf(h.input_json_schema)), [h])
  const [input, setInput] = useState(initial)
  const fields = useMemo(() => fieldsOf(h.input_json_schema), [h])
  const [form, setForm] = useState(false)
  const [busy, setBusy] = useState(false)
  const [answer, setAnswer] = useState<Answer>()
  const [error, setError] = useState('')
  const base = (version.data?.ingress_endpoint ?? '').replace(/\/$/, '')
  const target = `${segment(s.name)}${keyed ? `/${segment(key)}` : ''}/${segment(h.name)}`
  const route = scope.trim() ? `/platform/scope/${segment(scope.trim())}/${mode}/${target}` : `/${target}${mode === 'send' ? '/send' : ''}`
  const path = route + (mode === 'send' && delay.trim() ? `?delay=${encodeURIComponent(delay.trim().replaceAll(' ', ''))}` : '')
  const extra = parseHeaders(headers)
  const all: (readonly [string, string])[] = [...(idempotency.trim() ? [['idempotency-key', idempotency.trim()] as const] : []), ...(scope.trim() && limitKey.trim() ? [['x-platform-limit-key', limitKey.trim()] as const] : []), ...extra.list]
  const curl = `curl ${/^\.\.?$/.test(key) ? '--path-as-is ' : ''}${shellQuote(base + path)}${input.trim() ? ` --json ${shellQuote(input)}` : ' -X POST'}${all.map(([n, v]) => ` -H ${shellQuote(`${n}: ${v}`)}`).join('')}`
  const broken = input.trim() !== '' && !validJSON(input)
  const withoutCredentials = extra.list.some(([n]) => n.toLowerCase() === 'authorization') ? undefined : missingCredentials(s)
  const send = (): void => {
    if (busy || !base || (keyed && !key)) return
    setAnswer(undefined)
    // Browsers take these keys for steps in the path.
    const problem = extra.problem ?? (keyed && /^\.\.?$/.test(key) ? 'A browser cannot send this key. Run the command below.' : '')
    setError(problem)
    if (problem) return
    setBusy(true)
    const from = Date.now()
    fetch(base + path, {
      method: 'POST', signal: AbortSignal.timeout(600_000), headers: { ...(input.trim() ? { 'content-type': 'application/json' } : {}), ...Object.fromEntries(all) }, ...(input.trim() ? { body: input } : {}), credentials: 'omit',
    }).then(async (r) => {
      setAnswer({ status: r.status, ok: r.ok, id: r.headers.get('x-platform-id') ?? r.headers.get('x-restate-id'), body: new Uint8Array(await r.arrayBuffer()), from, to: Date.now() })
    }).catch((err: unknown) => {
      setError((err as Error).name === 'TimeoutError' ? 'There was no response within ten minutes. The invocation continues.' : `The browser cannot reach the ingress at ${base}. Run the command below where it is reachable.`)
    }).finally(() => setBusy(false))
  }
  return (
    <Section title={<>Invoke <span class="mono">{h.name}</span></>} actions={<button type="button" class="link" onClick={() => setQuery({ invoke: undefined })}>Close</button>}>
      <form class="invoke" onSubmit={(e) => {
        e.preventDefault()
        send()
      }}>
        <div class="invoke-row">
          <Segmented label="Mode" value={mode} onChange={setMode} options={[['call', 'Call'], ['send', 'Send']]} />
          <span class="muted">{mode === 'call' ? 'waits for the result' : 'returns an id; it runs in the background'}</span>
        </div>
        {keyed && <Field label={s.ty === 'Workflow' ? 'Workflow id' : 'Key'}><input class="input mono" value={key} required onInput={(e) => setKey(e.currentTarget.value)} /></Field>}
        {!noInput && (
          <div class="field">
            <div class="invoke-row">
              <span class="field-label">Input <span class="muted">{shortType(h.input_description)}</span></span>
              {fields.length > 0 && <><span class="grow" /><Segmented label="Edit the input as" value={form ? 'form' : 'json'} onChange={(v) => setForm(v === 'form')} options={[['form', 'Form'], ['json', 'JSON']]} /></>}
            </div>
            {form
              ? <InputForm fields={fields} input={input} change={setInput} />
              : <Editor language="json" label="Input" value={input} onChange={setInput} onSubmit={send} minHeight="96px" />}
            {broken && <span class="field-hint">This is not valid JSON. It is sent as it is.</span>}
          </div>
        )}
        <details class="more-options" open={scope !== '' || undefined}>
          <summary>Options</summary>
          {mode === 'send' && <Field label="Delay" hint="10s, 90m, 2days"><input class="input" value={delay} onInput={(e) => setDelay(e.currentTarget.value)} /></Field>}
          <Field label="Idempotency key" hint="Calls with the same key run once."><input class="input mono" value={idempotency} onInput={(e) => setIdempotency(e.currentTarget.value)} /></Field>
          {version.data?.features.vqueues && (
            <div class="form-grid">
              <Field label="Scope" hint="Rules of flow control limit what runs in it."><input class="input mono" value={scope} onInput={(e) => setScope(e.currentTarget.value)} /></Field>
              <Field label="Limit key" hint="One or two levels, a or a/b. Needs a scope."><input class="input mono" value={limitKey} disabled={!scope.trim()} onInput={(e) => setLimitKey(e.currentTarget.value)} /></Field>
            </div>
          )}
          <Field label="Headers" hint="One per line, as name: value."><textarea class="input mono" rows={2} value={headers} onInput={(e) => setHeaders(e.currentTarget.value)} /></Field>
        </details>
        <div class="invoke-row">
          <Button type="submit" kind="primary" icon="play" busy={busy}>{busy ? 'Waiting for the result…' : mode === 'call' ? 'Call' : 'Send'}</Button>
          {!h.public ? <span class="muted">The handler is private: the ingress refuses it.</span> : withoutCredentials && <span class="muted">{withoutCredentials}</span>}
        </div>
        {error && <p class="dialog-error" role="alert">{error}</p>}
        {answer && (
          <div class={`answer ${answer.ok ? 'ok' : 'bad'}`} role="status">
            <div class="answer-head"><b class="num">{answer.status}</b><span>{answer.ok ? (mode === 'send' ? 'Accepted' : 'Succeeded') : 'Failed'}</span><span class="muted"><Elapsed from={answer.from} to={answer.to} /></span><span class="grow" />{answer.id && <InvocationID id={answer.id} />}</div>
            <PayloadView payload={{ bytes: answer.body, length: answer.body.length }} title="Response" save={() => saveFile('response', 'application/octet-stream', answer.body)} />
          </div>
        )}
        <Command text={curl} />
      </form>
    </Section>
  )
}

/** Edits the simple properties of an input that is an object. */
function InputForm({ fields, input, change }: { fields: readonly FormField[]; input: string; change: (input: string) => void }) {
  const values = propertiesOf(input)
  if (!values) return <p class="field-hint">The input is not a JSON object. Edit it as JSON.</p>
  const set = (f: FormField, text: string): void => {
    // A number keeps its digits.
    const value = f.kind === 'boolean' || (f.kind === 'number' && validJSON(text)) ? text : JSON.stringify(f.kind === 'number' ? Number(text) : text)
    change(withMember(input, f.name, text === '' && (f.kind !== 'text' || !f.required) ? undefined : value))
  }
  const others = Object.keys(values).filter((name) => !fields.some((f) => f.name === name))
  return (
    <>
      <div class="form-grid">
        {fields.map((f) => (
          <Field key={f.name} label={f.name} hint={f.required ? undefined : 'optional'}>
            {f.kind === 'boolean' || f.kind === 'choice'
              ? (
                <select class="input" value={String(values[f.name] ?? '')} onChange={(e) => set(f, e.currentTarget.value)}>
                  <option value="">not set</option>
                  {(f.kind === 'boolean' ? ['true', 'false'] : f.choices).map((c) => <option key={c} value={c}>{c}</option>)}
                </select>
              )
              : f.kind === 'number'
                ? <input class="input" type="number" step="any" value={String(values[f.name] ?? '')} onInput={(e) => set(f, e.currentTarget.value)} />
                : <input class="input" value={String(values[f.name] ?? '')} onInput={(e) => set(f, e.currentTarget.value)} />}
          </Field>
        ))}
      </div>
      {others.length > 0 && <p class="field-hint">Also in the input, edited as JSON: <span class="mono">{others.join(', ')}</span></p>}
    </>
  )
}

/** Does nothing if the handler in the address does not exist. */
export function useKnownHandler(names: readonly string[]): void {
  const invoke = query.value.get('invoke')
  useEffect(() => {
    if (invoke && !names.includes(invoke)) setQuery({ invoke: undefined })
  }, [invoke])
}
