// What the user may do, and how to log out.

import { useResource } from '../resource.ts'
import { get, request } from '../api/client.ts'
import type { Identity } from '../api/types.ts'
import { href } from '../router.ts'
import { identity, keepLogoutPage, may, roles, setToken, token, type Permission } from '../session.ts'
import { Button, Facts, Loaded, PageHead, Pill, Section, Time } from '../ui/basic.tsx'
import { Table } from '../ui/table.tsx'
import { toastError } from '../ui/overlay.tsx'
import { ProviderLogout } from './login.tsx'

/** Forgets the token, and revokes the session of a user. */
async function logOut(): Promise<void> {
  try {
    if (identity.peek()?.session) keepLogoutPage((await request<{ logout_url?: string }>('/logout', { method: 'POST' })).logout_url)
  } catch (err) {
    toastError(err, 'You are still logged in')
    return
  }
  setToken('')
  identity.value = undefined
  location.reload()
}

const limitsOf = (who: Identity): string => [...(who.services ?? []), ...(who.scopes ?? []).map((s) => `scope ${s}`)].join(', ')

function factsOf(who: Identity): Parameters<typeof Facts>[0]['rows'] {
  return [
    [who.session ? 'User' : 'Token', who.name ?? (who.token_required ? 'none' : 'none; this server requires none')],
    ['Roles', <span class="wrap">{who.roles.map((r) => <Pill key={r}>{r}</Pill>)}</span>],
    who.session && who.expires_at ? ['Logged in until', <Time at={who.expires_at} />] : null,
    limitsOf(who) ? ['Limited to', limitsOf(who)] : null,
  ]
}

/** The identity of the user, as a section of the settings. */
export function Access() {
  const who = identity.value
  if (!who) return null
  return (
    <Section title="Access">
      <Facts rows={[
        ...factsOf(who),
        ['Permissions', <a href={href('/access')}>What I may do</a>],
        may('secure') ? ['Administration', <><a href={href('/tokens')}>Tokens</a> · <a href={href('/audit')}>Audit log</a></>] : null,
      ]} />
      {(token.value !== '' || who.session) && <p><Button onClick={() => void logOut()}>Log out</Button></p>}
      {!who.session && <ProviderLogout />}
    </Section>
  )
}

const meanings: [Permission, string][] = [
  ['view', 'See invocations, services, queues and the cluster, without payloads'],
  ['payloads', 'See inputs, results, journals and state'],
  ['invoke', 'Call handlers and send signals'],
  ['complete', 'Complete awakeables'],
  ['operate', 'Cancel, kill, pause and resume invocations; change state, queues and rules'],
  ['deploy', 'Register deployments, change services and event subscriptions'],
  ['secure', 'Manage tokens and read the audit log'],
  ['administer', 'Change the cluster'],
  ['metrics', 'Read metrics'],
  ['profile', 'Read profiles of the process, if they are enabled'],
]

export function MyAccess() {
  const who = useResource('whoami', (s) => get<Identity>('/whoami', s), { every: 60_000 })
  return (
    <>
      <div class="crumbs"><a href={href('/settings')}>Settings</a></div>
      <PageHead title="My access" summary="What this server permits you" />
      <Loaded of={who} rows={4}>{(w) => (
        <>
          <Section><Facts rows={factsOf(w)} /></Section>
          {limitsOf(w) && <p role="note">All of this applies to {limitsOf(w)} only: lists show nothing else, and pages about the whole cluster are not available.</p>}
          <Section title="Permissions" flush>
            <Table label="Permissions" rows={meanings} keyOf={([p]) => p} columns={[
              { id: 'permission', title: 'Permission', class: 'fit', cell: ([p]) => <b>{p}</b> },
              { id: 'meaning', title: 'Permits to', class: 'text', cell: ([, meaning]) => meaning },
              { id: 'granted', title: 'You', class: 'fit', cell: ([p]) => may(p, w) ? <Pill tone="ok">permitted</Pill> : <span class="faint">needs the role {roles[p]}</span> },
            ]} />
          </Section>
          {!may('secure', w) && <p class="muted">Roles are granted by those who manage tokens{w.session ? ', or by groups at the identity provider; log in again after a change' : ''}.</p>}
        </>
      )}</Loaded>
    </>
  )
}
