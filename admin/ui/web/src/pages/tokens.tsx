// Tokens of the admin API and the ingress.

import { useState } from 'preact/hooks'
import { get, request } from '../api/client.ts'
import type { CreatedToken, Token } from '../api/types.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { href, segment } from '../router.ts'
import { refusalOf } from '../session.ts'
import { Button, Command, Empty, Field, ID, Loaded, PageHead, Pill, Time } from '../ui/basic.tsx'
import { FormButtons } from '../ui/form.tsx'
import { ask, DialogFrame, openDialog, toast } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'

const roles: [string, string][] = [
  ['viewer', 'read everything but payloads and tokens'],
  ['reader', 'read payloads as well'],
  ['invoker', 'call handlers'],
  ['operator', 'view, and change invocations, state and queues'],
  ['deployer', 'view, and change deployments and services'],
  ['security', 'view, and manage tokens and read the audit log'],
  ['admin', 'everything'],
]

export function Tokens() {
  const refusal = refusalOf('secure')
  if (refusal) return <Empty title="Tokens" icon="key" page><p>{refusal}</p></Empty>
  return <List />
}

function List() {
  const tokens = useResource('tokens', (s) => get<{ tokens: Token[] }>('/tokens', s), { every: 10_000 })
  return (
    <>
      <div class="crumbs"><a href={href('/settings')}>Settings</a></div>
      <PageHead title="Tokens" summary="For people and programs that use the admin API or call handlers">
        <Button kind="primary" icon="key" onClick={() => void openDialog('Create a token', (close) => <Create close={close} />)}>Create token</Button>
      </PageHead>
      <Loaded of={tokens} what="The tokens could not be listed">{(t) => t.tokens.length === 0 ? <Empty title="No tokens" icon="key"><p>The token of the administrator is in a file of the node.</p></Empty> : (
        <Table label="Tokens" rows={t.tokens} keyOf={(o) => o.id} columns={[
          { id: 'token', title: 'Name', class: 'grow', cell: (o) => <><b title={o.name}><bdi>{o.name}</bdi></b>{o.session && <> <Pill>login</Pill></>}</> },
          { id: 'roles', title: 'Roles', class: 'text', cell: (o) => <span class="wrap">{o.roles.map((r) => <Pill key={r}>{r}</Pill>)}</span> },
          { id: 'limits', title: 'Limited to', cell: (o) => [...(o.services ?? []), ...(o.scopes ?? []).map((s) => `scope ${s}`)].join(', ') || <span class="faint">all</span> },
          { id: 'used', title: 'Last used', class: 'num fit', cell: (o) => (o.last_used ? <Time at={o.last_used} /> : <span class="faint">never</span>) },
          { id: 'expires', title: 'Expires', class: 'num fit', cell: (o) => (o.expired ? <b class="bad-text">expired</b> : o.expires_at ? <Time at={o.expires_at} /> : <span class="faint">never</span>) },
          { id: 'id', title: 'Id', class: 'c-idcol', cell: (o) => <ID id={o.id} /> },
          { id: 'revoke', title: 'Actions', class: 'fit', cell: (o) => <Button small kind="ghost" icon="trash" label={`Revoke ${o.name}`} onClick={() => revoke(o)} /> },
        ]} />
      )}</Loaded>
    </>
  )
}

function revoke(t: Token): void {
  void ask({ title: `Revoke “${t.name}”?`, action: 'Revoke', danger: true, body: <p>Requests with this token are refused immediately.</p> }, async () => {
    await request(`/tokens/${segment(t.id)}`, { method: 'DELETE' })
    toast('ok', `The token ${t.name} was revoked`)
    refreshAll()
  })
}

const list = (text: string): string[] => text.split(',').map((s) => s.trim()).filter((s) => s !== '')

function Create({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState<string[]>(['viewer'])
  const [services, setServices] = useState('')
  const [expires, setExpires] = useState('90d')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const [created, setCreated] = useState<CreatedToken>()
  if (created) {
    return (
      <DialogFrame title={`Token ${created.name}`} close={close} actions={<button type="button" class="button primary" onClick={close}><span>Done</span></button>}>
        <p>Copy it now: it cannot be shown again.</p>
        <Command text={created.token} />
      </DialogFrame>
    )
  }
  const submit = async (): Promise<void> => {
    if (busy) return // a second token would not be shown
    setBusy(true)
    setError('')
    try {
      setCreated(await request<CreatedToken>('/tokens', {
        method: 'POST',
        body: { name: name.trim(), roles: chosen, ...(list(services).length > 0 ? { services: list(services) } : {}), ...(expires.trim() ? { expires_in: expires.trim() } : {}) },
      }))
      refreshAll()
    } catch (err) {
      setError((err as Error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form onSubmit={(e) => {
      e.preventDefault()
      void submit()
    }}>
      <DialogFrame title="Create a token" close={close} actions={<FormButtons close={close} action="Create" busy={busy} disabled={name.trim() === '' || chosen.length === 0} />}>
        <Field label="Name"><input class="input" value={name} required autofocus onInput={(e) => setName(e.currentTarget.value)} /></Field>
        <fieldset class="roles"><legend>Roles</legend>{roles.map(([role, what]) => (
          <label key={role}><input type="checkbox" checked={chosen.includes(role)} onChange={(e) => setChosen(e.currentTarget.checked ? [...chosen, role] : chosen.filter((r) => r !== role))} /> <b>{role}</b> <span class="muted">{what}</span></label>
        ))}</fieldset>
        <Field label="Services" hint="Limits the token to these, separated by commas"><input class="input mono" value={services} onInput={(e) => setServices(e.currentTarget.value)} /></Field>
        <Field label="Expires after" hint="A duration such as 90d; empty for never"><input class="input mono" value={expires} onInput={(e) => setExpires(e.currentTarget.value)} /></Field>
        {error && <p class="dialog-error" role="alert">{error}</p>}
      </DialogFrame>
    </form>
  )
}
