// Services and deployments.

import { useEffect, useState } from 'preact/hooks'
import { get, request } from '../api/client.ts'
import type { Counts, Deployment, Registered, Service } from '../api/types.ts'
import { formatCompact, formatCount, plural } from '../lib/format.ts'
import { parseHeaders } from '../lib/headers.ts'
import { refreshAll } from '../live.ts'
import { optional, useResource } from '../resource.ts'
import { href, place, query, segment, setQuery } from '../router.ts'
import { Button, Command, DeploymentID, Empty, Field, Loaded, PageHead, Pill, Status, Switch, Tabs, Time, typeName } from '../ui/basic.tsx'
import { identity, refusalOf } from '../session.ts'
import { DialogFrame, openDialog, toast } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'
import { countsOf, describeInUse } from './common.tsx'
import { removeDrained } from './drained.tsx'

export function Services() {
  const onDeployments = place.value.path.startsWith('/deployments')
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 5000, topics: ['deployments'] })
  const deployments = useResource('deployments', (s) => get<{ deployments: Deployment[] }>('/deployments', s), { every: 5000, topics: ['deployments'] })
  const counts = useResource('counts', (s) => optional('/invocations/counts', () => get<Counts>('/invocations/counts', s)), { every: 5000, atLeast: 2000, topics: ['overview'] })
  const [find, setFind] = useState('')
  useEffect(() => {
    if (query.value.get('register') === 'true' && identity.value) { // it says who may register
      setQuery({ register: undefined })
      register()
    }
  }, [query.value, identity.value])
  const list = services.data?.services ?? []
  const deployed = deployments.data?.deployments ?? []
  const wanted = find.trim().toLowerCase()
  return (
    <>
      <PageHead title={onDeployments ? 'Deployments' : 'Services'} summary={services.data && deployments.data ? `${plural(list.length, 'service')} on ${plural(deployed.length, 'deployment')}` : ' '}>
        {onDeployments && deployed.some((d) => latestOf(d, list).length === 0) && <Button icon="trash" needs="deploy" onClick={() => removeDrained(deployed.filter((d) => latestOf(d, list).length === 0))}>Remove drained</Button>}
        <Button kind="primary" icon="plus" needs="deploy" onClick={() => register()}>Register deployment</Button>
      </PageHead>
      <div class="tabs-row">
        <Tabs label="Kind" tabs={[
          { title: 'Services', href: href('/services'), on: !onDeployments, count: services.data ? formatCount(list.length) : undefined },
          { title: 'Deployments', href: href('/deployments'), on: onDeployments, count: deployments.data ? formatCount(deployed.length) : undefined },
        ]} />
        <input class="input small" type="search" placeholder={onDeployments ? 'Find a deployment' : 'Find a service'} aria-label="Find" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
      </div>
      {!onDeployments && (
        <Loaded of={services} what="The services could not be listed">{() => list.length === 0
          ? <NoServices />
          : (
            <Table label="Services" rows={list.filter((s) => s.name.toLowerCase().includes(wanted) || s.handlers.some((h) => h.name.toLowerCase().includes(wanted)))} keyOf={(s) => s.name} hrefOf={(s) => href(`/services/${segment(s.name)}`)} columns={[
              { id: 'name', title: 'Service', class: 'path', cell: (s) => <><a class="strong" href={href(`/services/${segment(s.name)}`)}>{s.name}</a>{!s.public && <Pill title="not callable through the ingress">private</Pill>}{s.info && s.info.length > 0 && <Pill tone="warn" title={s.info.map((n) => n.message).join('\n')}>{plural(s.info.length, 'notice')}</Pill>}</> },
              { id: 'type', title: 'Type', class: 'fit', cell: (s) => <span class="muted">{typeName(s.ty)}</span> },
              { id: 'handlers', title: 'Handlers', class: 'grow', cell: (s) => <span class="handlers">{s.handlers.slice(0, 8).map((h) => <a key={h.name} class="mono" href={href(`/services/${segment(s.name)}`, { invoke: h.name })} title={`Invoke ${s.name}/${h.name}`}>{h.name}</a>)}{s.handlers.length > 8 && <span class="muted">+{s.handlers.length - 8}</span>}</span> },
              ...(counts.data !== null ? [
                { id: 'open', title: 'Unfinished', class: 'num fit', cell: (s: Service) => <CountLink n={counts.data ? countsOf(counts.data, s.name).unfinished : undefined} link={href('/invocations', new URLSearchParams([['status', 'pending'], ['status', 'scheduled'], ['status', 'ready'], ['status', 'running'], ['status', 'backing-off'], ['status', 'suspended'], ['status', 'paused'], ['service', s.name]]))} /> },
                { id: 'failing', title: 'Failing', class: 'num fit', cell: (s: Service) => <CountLink bad n={counts.data ? countsOf(counts.data, s.name).failing : undefined} link={href('/invocations', new URLSearchParams([['status', 'backing-off'], ['status', 'paused'], ['service', s.name]]))} /> },
              ] : []),
              { id: 'revision', title: 'Revision', class: 'num fit', cell: (s) => s.revision },
              { id: 'deployment', title: 'Deployment', class: 'cut', cell: (s) => { const d = deployed.find((o) => o.id === s.deployment_id); return d ? <a class="mono cut" href={href(`/deployments/${segment(d.id)}`)} title={d.id}>{d.uri ?? d.arn}</a> : <DeploymentID id={s.deployment_id} /> } },
            ]} />
          )}</Loaded>
      )}
      {onDeployments && (
        <Loaded of={deployments} what="The deployments could not be listed">{() => deployed.length === 0
          ? <NoServices />
          : (
            <Table label="Deployments" rows={[...deployed].reverse().filter((d) => `${d.id} ${d.uri ?? ''} ${d.arn ?? ''} ${d.services.map((s) => s.name).join(' ')}`.toLowerCase().includes(wanted))} keyOf={(d) => d.id} hrefOf={(d) => href(`/deployments/${segment(d.id)}`)} columns={[
              { id: 'address', title: 'Address', cell: (d) => <a class="strong mono cut" href={href(`/deployments/${segment(d.id)}`)}>{d.uri ?? d.arn}</a> },
              { id: 'state', title: 'State', class: 'fit', cell: (d) => (latestOf(d, list).length > 0 ? <Pill tone="ok">serves {plural(latestOf(d, list).length, 'service')}</Pill> : <Pill>superseded</Pill>) },
              { id: 'services', title: 'Services', class: 'grow cut', cell: (d) => <span class="muted" title={d.services.map((s) => `${s.name}, revision ${s.revision}`).join('\n')}>{d.services.map((s) => s.name).join(', ')}</span> },
              { id: 'sdk', title: 'SDK', class: 'cut', cell: (d) => <span class="mono muted">{d.sdk_version ?? ''}</span> },
              { id: 'id', title: 'Id', class: 'c-idcol', cell: (d) => <DeploymentID id={d.id} /> },
              { id: 'created', title: 'Registered', class: 'num fit', cell: (d) => <Time at={d.created_at} /> },
            ]} />
          )}</Loaded>
      )}
    </>
  )
}

/** Services whose newest revision is on a deployment. */
export const latestOf = (d: { id: string }, services: readonly Service[]): Service[] => services.filter((s) => s.deployment_id === d.id)

function CountLink({ n, link, bad }: { n: number | undefined; link: string; bad?: boolean }) {
  if (n === undefined) return <span class="faint">–</span>
  if (n === 0) return <span class="faint">0</span>
  return <a class={bad ? 'bad-text' : ''} href={link}>{formatCompact(n)}</a>
}

function NoServices() {
  return (
    <Empty title="No services yet" icon="services">
      <p>Start a service endpoint with an SDK, then register its address.</p>
      <Command text="platform deployments register http://localhost:9080" />
    </Empty>
  )
}

export function register(address = ''): void {
  const refusal = refusalOf('deploy')
  if (refusal) {
    toast('info', refusal)
    return
  }
  void openDialog('Register a deployment', (close) => <Register close={close} address={address} />, true)
}

function Register({ close, address }: { close: () => void; address: string }) {
  const [uri, setURI] = useState(address)
  const [http11, setHTTP11] = useState(false)
  const [headers, setHeaders] = useState('')
  const [breaking, setBreaking] = useState(false)
  const [force, setForce] = useState(false)
  const [plan, setPlan] = useState<Registered>()
  const [error, setError] = useState<Error & { code?: string }>()
  const [busy, setBusy] = useState(false)
  const deployments = useResource('deployments', (s) => get<{ deployments: Deployment[] }>('/deployments', s), { every: 0 })
  const before = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 0 })
  const body = (): Record<string, unknown> => {
    const t = uri.trim()
    const extra = Object.fromEntries(parseHeaders(headers).list)
    return {
      ...(t.startsWith('arn:') ? { arn: t } : { uri: /^[a-z]+:\/\//.test(t) ? t : `http://${t}` }),
      ...(http11 ? { use_http_11: true } : {}), ...(Object.keys(extra).length > 0 ? { additional_headers: extra } : {}), ...(breaking ? { breaking: true } : {}),
    }
  }
  const send = (dry: boolean, replace = force): void => {
    const { problem } = parseHeaders(headers)
    setError(problem ? new Error(problem) : undefined)
    if (problem) return
    setBusy(true)
    request<Registered>('/deployments', { method: 'POST', body: { ...body(), ...(replace ? { force: true } : {}), ...(dry ? { dry_run: true } : {}) }, timeout: 60_000 }).then((answer) => {
      setBusy(false)
      if (dry) {
        setPlan(answer)
        return
      }
      close()
      refreshAll()
      toast('ok', <>{plural(answer.services.length, 'service')} registered on <a href={href(`/deployments/${segment(answer.id)}`)}>{answer.id}</a></>)
    }, (err: Error) => {
      setBusy(false)
      setError(err)
    })
  }
  // The address is registered, so that a registration would change nothing; a replacement is checked first.
  const known = plan !== undefined && !force && (deployments.data?.deployments ?? []).some((d) => d.id === plan.id)
  const suggestHTTP11 = error?.code === 'META0014'
  return (
    <form onSubmit={(e) => {
      e.preventDefault()
      if (!uri.trim() || busy) return
      if (known) {
        setForce(true)
        send(true, true)
      } else send(plan === undefined)
    }}>
      <DialogFrame title="Register a deployment" close={close} actions={
        <>
          {plan && <Button icon="left" onClick={() => setPlan(undefined)}>Back</Button>}
          <Button onClick={close}>Close</Button>
          <Button kind="primary" type="submit" busy={busy} disabled={!uri.trim()}>{busy ? 'Asking the endpoint…' : !plan ? 'Check' : known ? 'Replace it' : 'Register'}</Button>
        </>
      }>
        {!plan && (
          <fieldset class="plain" disabled={busy}>
            <Field label="Address" hint="URL of the service endpoint as the server reaches it, or the ARN of a Lambda function version."><input class="input mono" value={uri} autofocus placeholder="http://localhost:9080" autocomplete="off" spellcheck={false} onInput={(e) => setURI(e.currentTarget.value)} /></Field>
            <details class="more-options">
              <summary>Options</summary>
              <Switch checked={http11} onChange={setHTTP11}>Use HTTP/1.1 (endpoints that cannot do HTTP/2)</Switch>
              <Field label="Additional headers" hint="Sent with every request to the endpoint; one per line, as name: value."><textarea class="input mono" rows={3} value={headers} onInput={(e) => setHeaders(e.currentTarget.value)} /></Field>
              <Switch checked={breaking} onChange={setBreaking}>Allow breaking changes (removed handlers, other types)</Switch>
              <Switch checked={force} onChange={setForce}>Replace the deployment at this address in place</Switch>
            </details>
          </fieldset>
        )}
        {plan && <Plan plan={plan} before={before.data?.services ?? []} known={known} />}
        {error && <div class="dialog-error" role="alert"><p>{error.message}</p>{suggestHTTP11 && <Button small onClick={() => { setHTTP11(true); setError(undefined) }}>Use HTTP/1.1</Button>}</div>}
      </DialogFrame>
    </form>
  )
}

/** What a registration would change. */
function Plan({ plan, before, known }: { plan: Registered; before: Service[]; known: boolean }) {
  return (
    <div class="plan">
      <p class="muted">{plan.sdk_version} · protocol {plan.min_protocol_version}–{plan.max_protocol_version}. Nothing has been changed yet.</p>
      {plan.services.map((s) => {
        const old = before.find((o) => o.name === s.name)
        const had = new Set(old?.handlers.map((h) => h.name))
        const has = new Set(s.handlers.map((h) => h.name))
        return (
          <div class="plan-service" key={s.name}>
            <div><b>{s.name}</b> <span class="muted">{typeName(s.ty)}</span> {old && old.revision === s.revision ? <Pill>revision {s.revision}, unchanged</Pill> : old ? <Pill tone="accent">revision {old.revision} → {s.revision}</Pill> : <Pill tone="ok">new</Pill>}</div>
            <ul class="diff mono">
              {s.handlers.map((h) => <li key={h.name} class={old && !had.has(h.name) ? 'add' : !old ? 'add' : ''}>{h.name}{h.ty && <span class="muted"> {h.ty.toLowerCase()}</span>}</li>)}
              {[...had].filter((h) => !has.has(h)).map((h) => <li key={h} class="remove">{h}</li>)}
            </ul>
            {s.info?.map((n) => <p class="notice" key={n.message}>{n.message}</p>)}
          </div>
        )
      })}
      {known
        ? <p class="notice">This address is registered as {plan.id}, and its endpoint offers the same services and handlers. If its code has changed, register it at an address of its own, or replace the deployment: “Replace it” shows first what would change.</p>
        : plan.info?.map((n) => <p class="notice" key={n.message}>{n.message}</p>)}
    </div>
  )
}

export { Status, describeInUse }
