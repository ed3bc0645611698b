// Preferences of this browser, and what the server is.

import { useState } from 'preact/hooks'
import { get } from '../api/client.ts'
import type { Version } from '../api/types.ts'
import { theme, views, zone } from '../prefs.ts'
import { liveMode, livePaused } from '../live.ts'
import { useResource } from '../resource.ts'
import { href } from '../router.ts'
import { Access } from './access.tsx'
import { Button, Copy, Facts, Loaded, PageHead, Pill, Section, Segmented, Switch } from '../ui/basic.tsx'

export function Settings() {
  const version = useResource('version', (s) => get<Version>('/version', s), { every: 60_000 })
  const [licenses, setLicenses] = useState<string>()
  return (
    <>
      <PageHead title="Settings" summary="Preferences of this browser, and facts about the server" />
      <div class="split">
        <div class="stack">
          <Section title="Appearance">
            <Facts rows={[
              ['Theme', <Segmented label="Theme" value={theme.value} onChange={(v) => { theme.value = v }} options={[['system', 'System'], ['light', 'Light'], ['dark', 'Dark']]} />],
              ['Absolute times', <Segmented label="Time zone" value={zone.value} onChange={(v) => { zone.value = v }} options={[['local', 'Local'], ['utc', 'UTC']]} />],
              ['Live updates', <Switch checked={!livePaused.value} onChange={(v) => { livePaused.value = !v }}>{livePaused.value ? 'off' : liveMode.value === 'stream' ? 'on, by a stream of changes' : 'on, by reading every few seconds'}</Switch>],
            ]} />
          </Section>
          <Access />
        </div>
        <div class="stack">
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
      </div>
    </>
  )
}
