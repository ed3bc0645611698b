// One deployment.

import { useState } from 'preact/hooks'
import { APIError, get, request, withQuery } from '../api/client.ts'
import type { Counts, DeploymentDetail, Service } from '../api/types.ts'
import { plural } from '../lib/format.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { href, navigate, segment, type Match } from '../router.ts'
import { Button, Copy, Empty, ErrorBox, Facts, Field, PageHead, Pill, Section, Skeleton, Stale, Switch, Time, statusLook, typeName } from '../ui/basic.tsx'
import { DialogFrame, ask, openDialog, toast } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'
import { Notices } from './common.tsx'

export function DeploymentPage({ params }: { params: Match }) {
  const id = params.id!
  const deployment = useResource(`deployment:${id}`, (s) => get<DeploymentDetail>(`/deployments/${segment(id)}`, s), { every: 10_000, topics: ['deployments'] })
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 10_000, topics: ['deployments'] })
  const pinned = useResource(`pinned:${id}`, (s) => get<Counts>(withQuery('/invocations/counts', { deployment: id }), s), { every: 10_000 })
  if (!deployment.data) {
    if (deployment.error instanceof APIError && (deployment.error.status === 404 || deployment.error.status === 400)) return <Empty title="This deployment does not exist" icon="services" page><p class="mono wrap">{id}</p><p>It may have been removed. <a href={href('/deployments')}>All deployments</a></p></Empty>
    return deployment.error ? <ErrorBox what="The deployment could not be read" error={deployment.error} retry={deployment.reload} /> : <Skeleton rows={10} />
  }
  const d = deployment.data
  const latest = services.data?.services.filter((s) => s.deployment_id === id) ?? []
  const unfinished = pinned.data && Object.entries(pinned.data.by_status).filter(([status, n]) => n > 0 && status !== 'completed')
  const open = unfinished?.reduce((sum, [, n]) => sum + n, 0)
  const remove = (): void => {
    const inUse = latest.length > 0 || (open ?? 0) > 0
    void ask({
      title: 'Remove this deployment?', action: 'Remove', danger: true, ...(inUse ? { typed: 'remove' } : {}),
      body: (
        <>
          <p class="mono wrap">{d.uri ?? d.arn}</p>
          {latest.length > 0 && <p><b>{plural(latest.length, 'service')}</b> will no longer be callable: {latest.map((s) => s.name).join(', ')}.</p>}
          {(open ?? 0) > 0 && <p><b>{plural(open!, 'unfinished invocation')}</b> started on it and cannot continue. Resume them on another deployment first.</p>}
          {!inUse && <p>Nothing uses it any longer.</p>}
        </>
      ),
    }, async () => {
      await request(`/deployments/${segment(id)}?force=true`, { method: 'DELETE' })
      toast('ok', 'The deployment was removed')
      refreshAll()
      navigate(href('/deployments'))
    })
  }
  return (
    <>
      <div class="crumbs"><a href={href('/deployments')}>Deployments</a></div>
      <PageHead title={<span class="mono wrap">{d.uri ?? d.arn}</span>} summary={<>{latest.length > 0 ? `Serves the newest revision of ${plural(latest.length, 'service')}` : 'Superseded by newer deployments'}{open !== undefined && (open > 0 ? ` · ${plural(open, 'unfinished invocation')}` : latest.length === 0 ? ' · drained: it can be removed' : '')}</>}>
        <a class="button plain" href={href('/invocations', { deployment: id })}><span>Invocations</span></a>
        <Button icon="edit" needs="deploy" onClick={() => void openDialog('Update', (close) => <Update d={d} close={close} />)}>Update address</Button>
        <Button icon="trash" needs="deploy" onClick={remove}>Remove</Button>
      </PageHead>
      <Stale error={deployment.error} at={deployment.at} retry={deployment.reload} />
      <Notices list={d.info} />
      <div class="split">
        <Section title="Services" flush>
          <Table label="Services" rows={d.services} keyOf={(s) => s.name} hrefOf={(s) => href(`/services/${segment(s.name)}`)} columns={[
            { id: 'name', title: 'Service', cell: (s) => <a class="strong" href={href(`/services/${segment(s.name)}`)}>{s.name}</a> },
            { id: 'type', title: 'Type', class: 'fit', cell: (s) => <span class="muted">{typeName(s.ty)}</span> },
            { id: 'revision', title: 'Revision', class: 'fit num', cell: (s) => s.revision },
            { id: 'newest', title: 'State', class: 'fit', cell: (s) => { const now = services.data?.services.find((o) => o.name === s.name); return now?.deployment_id === id ? <Pill tone="ok">newest</Pill> : now ? <Pill>now {now.revision}</Pill> : null } },
          ]} />
        </Section>
        <div class="stack">
          <Section title="Unfinished invocations">
            {open === undefined ? <Skeleton rows={2} /> : open === 0 ? <p class="muted">No unfinished invocation started on this deployment.</p> : (
              <Facts rows={unfinished!.map(([status, n]) => [statusLook(status).title, <a href={href('/invocations', new URLSearchParams([['status', status], ['deployment', id]]))}>{plural(n, 'invocation')}</a>])} />
            )}
          </Section>
          <Section title="Endpoint">
            <Facts rows={[
              ['Id', <span class="mono wrap">{d.id}<Copy text={d.id} /></span>],
              ['Registered', <Time at={d.created_at} />],
              ['SDK', <span class="mono">{d.sdk_version ?? 'unknown'}</span>],
              d.protocol_type ? ['Connection', `${d.protocol_type === 'BidiStream' ? 'streams both ways' : 'request and response'}, ${d.http_version}`] : null,
              ['Protocol', `${d.min_protocol_version} to ${d.max_protocol_version}`],
              d.compression ? ['Compression', d.compression] : null,
              ...Object.entries(d.metadata ?? {}).map(([k, v]) => [k, <span class="wrap">{v}</span>] as [string, preact.ComponentChildren]),
              ...Object.keys(d.additional_headers ?? {}).map((k) => [`Header ${k}`, <span class="muted">set</span>] as [string, preact.ComponentChildren]),
            ]} />
          </Section>
        </div>
      </div>
    </>
  )
}

function Update({ d, close }: { d: DeploymentDetail; close: () => void }) {
  const [address, setAddress] = useState(d.uri ?? d.arn ?? '')
  const [overwrite, setOverwrite] = useState(false)
  const [checked, setChecked] = useState(false)
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const send = (dry: boolean): void => {
    setBusy(true)
    setError('')
    request(`/deployments/${segment(d.id)}`, { method: 'PATCH', timeout: 60_000, body: { ...(d.arn ? { arn: address } : { uri: address }), ...(overwrite ? { overwrite: true } : {}), ...(dry ? { dry_run: true } : {}) } }).then(() => {
      setBusy(false)
      if (dry) {
        setChecked(true)
        return
      }
      toast('ok', 'The deployment was updated')
      refreshAll()
      close()
    }, (err: Error) => {
      setBusy(false)
      setError(err.message)
    })
  }
  return (
    <form onSubmit={(e) => {
      e.preventDefault()
      send(!checked)
    }}>
      <DialogFrame title="Update the address" close={close} actions={<><Button onClick={close}>Close</Button><Button kind="primary" type="submit" busy={busy}>{checked ? 'Update' : 'Check'}</Button></>}>
        <p>Invocations that started on this deployment continue at the new address. It must run the same code, or code that replays the same journals.</p>
        {/* What is checked is what is updated. */}
        <fieldset class="plain" disabled={busy}>
          <Field label="Address"><input class="input mono" value={address} autofocus onInput={(e) => {
            setAddress(e.currentTarget.value)
            setChecked(false)
          }} /></Field>
          <Switch checked={overwrite} onChange={(on) => {
            setOverwrite(on)
            setChecked(false)
          }}>Even if the endpoint offers other services or handlers</Switch>
        </fieldset>
        {checked && <p class="ok-text">The endpoint responds and is compatible.</p>}
        {error && <p class="dialog-error" role="alert">{error}</p>}
      </DialogFrame>
    </form>
  )
}
