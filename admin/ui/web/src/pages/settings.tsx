// Preferences of this browser, and what the server is.

import { useState } from 'preact/hooks'
import { get, request } from '../api/client.ts'
import type { Version } from '../api/types.ts'
import { theme, views, zone } from '../prefs.ts'
import { liveMode, livePaused } from '../live.ts'
import { useResource } from '../resource.ts'
import { href } from '../router.ts'
import { identity, may, setToken, token } from '../session.ts'
import { Button, Copy, Facts, Loaded, PageHead, Pill, Section, Segmented, Switch, Time } from '../ui/basic.tsx'
import { toastError } from '../ui/overlay.tsx'

/** Forgets the token, and revokes the session of a user. */
async function logOut(): Promise<void> {
  try {
    if (identity.peek()?.session) await request('/logout', { method: 'POST' })
  } catch (err) {
    toastError(err, 'You are still logged in')
    return
  }
  setToken('')
  identity.value = undefined
  location.reload()
}

/** The identity and the permissions of the user. */
function Access() {
  const who = identity.value
  if (!who) return null
  return (
    <Section title="Access">
      <Facts rows={[
        [who.session ? 'User' : 'Token', who.name ?? (who.token_required ? 'none' : 'none; this server requires none')],
        ['Roles', <span class="wrap">{who.roles.map((r) => <Pill key={r}>{r}</Pill>)}</span>],
        ['Permissions', <span class="wrap">{who.permissions.map((p) => <Pill key={p}>{p}</Pill>)}</span>],
        who.session && who.expires_at ? ['Logged in until', <Time at={who.expires_at} />] : null,
        who.services || who.scopes ? ['Limited to', [...(who.services ?? []), ...(who.scopes ?? []).map((s) => `scope ${s}`)].join(', ')] : null,
        may('secure') ? ['Administration', <><a href={href('/tokens')}>Tokens</a> · <a href={href('/audit')}>Audit log</a></>] : null,
      ]} />
      {(token.value !== '' || who.session) && <p><Button onClick={() => void logOut()}>Log out</Button></p>}
    </Section>
  )
}

export function Settings() {
  const version = useResource('version', (s) => get<Version>('/version', s), { every: 60_000 })
  const [licenses, setLicenses] = useState<string>()
  return (
    <>
      <PageHead title="Settings" summary="Preferences of this browser, and facts about the server" />
      <div class="split">
        <Section title="Appearance">
          <Facts rows={[
            ['Theme', <Segmented label="Theme" value={theme.value} onChange={(v) => { theme.value = v }} options={[['system', 'System'], ['light', 'Light'], ['dark', 'Dark']]} />],
            ['Absolute times', <Segmented label="Time zone" value={zone.value} onChange={(v) => { zone.value = v }} options={[['local', 'Local'], ['utc', 'UTC']]} />],
            ['Live updates', <Switch checked={!livePaused.value} onChange={(v) => { livePaused.value = !v }}>{livePaused.value ? 'off' : liveMode.value === 'stream' ? 'on, by a stream of changes' : 'on, by reading every few seconds'}</Switch>],
          ]} />
        </Section>
        <Section title="Server">
          <Loaded of={version} rows={4}>{(v) => (
            <Facts rows={[
              ['Version', <span class="mono">{v.version}</span>],
              v.commit ? ['Commit', <span class="mono wrap">{v.commit}<Copy text={v.commit} /></span>] : null,
              ['Built with', <span class="mono">{v.go_version}</span>],
              ['Ingress', <span class="mono wrap">{v.ingress_endpoint}<Copy text={v.ingress_endpoint} /></span>],
              ['Feature level', v.supported_feature_level],
              ['Features', <span class="wrap">{Object.entries(v.features).map(([name, on]) => <Pill key={name} tone={on ? 'ok' : 'idle'}>{name.replaceAll('_', ' ')} {on ? 'on' : 'off'}</Pill>)}</span>],
            ]} />
          )}</Loaded>
        </Section>
        <Access />
        <Section title="Saved views">
          {views.value.length === 0 ? <p class="muted">None. Filter <a href={href('/invocations')}>invocations</a> and choose “Save view”.</p> : (
            <ul class="plain-list">{views.value.map((v) => <li key={v.name}><a href={href('/invocations') + v.search}>{v.name}</a> <Button small kind="ghost" icon="trash" label={`Forget ${v.name}`} onClick={() => { views.value = views.value.filter((o) => o !== v) }} /></li>)}</ul>
          )}
        </Section>
        <Section title="About">
          <p>The same data and actions are available from the <a href="/openapi" target="_blank" rel="noreferrer">admin API</a> and the command-line client <code>platform</code>. An exported invocation can be <a href={href('/bundle')}>opened from its file</a>.</p>
          <p><button type="button" class="link" aria-expanded={licenses !== undefined} onClick={() => {
            if (licenses !== undefined) setLicenses(undefined)
            else fetch('/ui/licenses.txt').then((r) => r.text()).then(setLicenses).catch(() => setLicenses('The licences could not be read.'))
          }}>Licences of the packages in this page</button></p>
          {licenses !== undefined && <pre class="licenses" tabIndex={0} aria-label="Licences">{licenses}</pre>}
        </Section>
      </div>
    </>
  )
}
