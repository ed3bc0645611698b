// The frame: side bar, top bar, routes, keyboard.

import type { ComponentChildren, FunctionComponent } from 'preact'
import { Component } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { signal } from '@preact/signals'
import { APIError, clusterHealth, get } from './api/client.ts'
import type { ClusterHealth, Counts, FailureGroup, Version } from './api/types.ts'
import { forgetAll, optional, useResource, type Resource } from './resource.ts'
import { liveMode, livePaused, refreshAll } from './live.ts'
import { theme, zone } from './prefs.ts'
import { href, match, navigate, place, type Match } from './router.ts'
import { Icon, Logo } from './ui/icons.tsx'
import { Button, Empty, ErrorBox, Skeleton } from './ui/basic.tsx'
import { Dialogs, DialogFrame, Toasts, dialogOpen, openDialog } from './ui/overlay.tsx'
import { tableKeys } from './ui/table.tsx'
import { loadMore, moreNow, withMore, type More } from './more.ts'
import { nav, type NavItem } from './nav.ts'
import { formatCompact } from './lib/format.ts'
import { Overview } from './pages/overview.tsx'
import { Invocations } from './pages/invocations.tsx'
import { InvocationPage } from './pages/invocation.tsx'
import { Failures } from './pages/failures.tsx'
import { LoggedIn, Login } from './pages/login.tsx'
import type { Identity } from './api/types.ts'
import { fromAddress, identity, limited, loggedIn, loginNeeded, refusalOf, setToken, token, tokenKey, users } from './session.ts'

function later(name: keyof More): FunctionComponent<{ params: Match }> {
  return function Later({ params }) {
    const [pages, setPages] = useState(moreNow())
    const [error, setError] = useState<Error>()
    const load = (): void => {
      setError(undefined)
      loadMore().then(setPages, setError)
    }
    useEffect(() => {
      if (!pages) load()
    }, [])
    if (error) return <ErrorBox what="This page could not be loaded. The server may have been updated: reload the page." error={error} retry={() => location.reload()} />
    if (!pages) return <Skeleton rows={10} />
    const Page = pages[name] as FunctionComponent<{ params: Match }>
    return <Page params={params} />
  }
}

const openPalette = (): void => withMore((m) => m.openPalette())

const Awakeables = later('Awakeables')
const Services = later('Services')
const Objects = later('Objects')
const ObjectPage = later('ObjectPage')
const FlowControl = later('FlowControl')
const Cluster = later('Cluster')
const SQL = later('SQL')
const Jobs = later('Jobs')
const Events = later('Events')
const KafkaClusters = later('KafkaClusters')
const Settings = later('Settings')
const Bundle = later('Bundle')
const MyAccess = later('MyAccess')
const Tokens = later('Tokens')
const Audit = later('Audit')
const ServicePage = later('ServicePage')
const DeploymentPage = later('DeploymentPage')

const routes: [string, FunctionComponent<{ params: Match }>, string][] = [
  ['/', Overview, 'Overview'],
  ['/failures', Failures, 'Failures'],
  ['/failures/:id', Failures, 'Failures'],
  ['/invocations', Invocations, 'Invocations'],
  ['/invocations/:id', InvocationPage, 'Invocation'],
  ['/awakeables', Awakeables, 'Awakeables'],
  ['/bundle', Bundle, 'Invocation bundle'],
  ['/services', Services, 'Services'],
  ['/deployments', Services, 'Deployments'],
  ['/services/:service', ServicePage, 'Service'],
  ['/deployments/:id', DeploymentPage, 'Deployment'],
  ['/objects', Objects, 'Objects'],
  ['/objects/:service/:key', ObjectPage, 'Object'],
  ['/flow-control', FlowControl, 'Flow control'],
  ['/flow-control/:tab', FlowControl, 'Flow control'],
  ['/cluster', Cluster, 'Cluster'],
  ['/sql', SQL, 'SQL'],
  ['/jobs', Jobs, 'Jobs'],
  ['/jobs/:id', Jobs, 'Job'],
  ['/subscriptions', Events, 'Events'],
  ['/subscriptions/:id', Events, 'Subscription'],
  ['/kafka-clusters', KafkaClusters, 'Kafka clusters'],
  ['/kafka-clusters/:name', KafkaClusters, 'Kafka cluster'],
  ['/settings', Settings, 'Settings'],
  ['/access', MyAccess, 'My access'],
  ['/tokens', Tokens, 'Tokens'],
  ['/audit', Audit, 'Audit log'],
  ['/logged-in', LoggedIn, 'Logged in'],
]

const drawer = signal(false)

/** What several pages need to know about the server. */
export interface Shared {
  version: Resource<Version>
  health: Resource<ClusterHealth>
  counts: Resource<Counts | null>
  failures: Resource<{ groups: FailureGroup[] } | null>
}

/** A link of the server's log may have the token. */
const given = fromAddress(location.hash)
if (given) {
  setToken(given)
  history.replaceState(history.state, '', location.pathname + location.search)
}

// A login or logout in another tab is one in this tab.
addEventListener('storage', (e) => {
  if (e.key !== tokenKey) return
  token.value = e.newValue ?? ''
  forgetAll()
  identity.value = undefined
  loginNeeded.value = false
  refreshAll()
})

/** The login above the page and its dialogs, which it makes inert. */
function Again() {
  const ref = useRef<HTMLDialogElement>(null)
  const show = (): void => {
    if (ref.current && !ref.current.open) ref.current.showModal()
  }
  useLayoutEffect(show, [])
  return <dialog ref={ref} class="again" aria-label="Log in" onCancel={(e) => e.preventDefault()} onClose={show}><Login /></dialog>
}

export function App() {
  const ended = loginNeeded.value
  // A login that ends in the middle of something is renewed: what was entered stays, unless another user logs in.
  const kept = loggedIn()
  return (
    <>
      {(!ended || kept) && <div class="whole" hidden={ended} key={users.value}><Frame /></div>}
      {ended && (kept ? <Again /> : <Login />)}
    </>
  )
}

function Frame() {
  const version = useResource('version', (s) => get<Version>('/version', s), { every: 60_000 })
  const health = useResource(limited() ? undefined : 'health', clusterHealth, { every: 5000, topics: ['cluster'] })
  const counts = useResource('counts', (s) => optional('/invocations/counts', () => get<Counts>('/invocations/counts', s)), { every: 5000, atLeast: 5000, topics: ['overview'] })
  const failures = useResource('failures-nav', (s) => optional('/failures', () => get<{ groups: FailureGroup[] }>('/failures?muted=false', s)), { every: 10_000, atLeast: 5000, topics: ['failures'] })
  const who = useResource('whoami', (s) => get<Identity>('/whoami', s), { every: 60_000 })
  useEffect(() => {
    // Keep the previous user: open dialogs stay only if the same one logs in again.
    if (who.data?.permissions.length === 0 && loggedIn()) loginNeeded.value = true
    else identity.value = who.data ?? undefined
  }, [who.data])
  useEffect(() => keyboard(), [])
  useEffect(() => {
    const timer = setTimeout(() => void loadMore().catch(() => undefined), 1500)
    return () => clearTimeout(timer)
  }, [])
  const path = place.value.path
  useEffect(() => {
    drawer.value = false
  }, [path])
  let page: ComponentChildren
  let title = 'Not found'
  for (const [pattern, Page, name] of routes) {
    const params = match(pattern, path)
    if (!params) continue
    page = <Guard key={path}><Page params={params} /></Guard>
    title = Object.values(params)[0] ? `${Object.values(params).join('/')} · ${name}` : name
    break
  }
  useEffect(() => {
    const cluster = health.data?.cluster_name
    document.title = cluster ? `${title} · ${cluster}` : title
  }, [title, health.data?.cluster_name])
  const refusal = loggedIn() ? refusalOf('view') : undefined
  const failed = (limited() ? counts : health).error
  const offline = failed instanceof APIError && failed.unreachable
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => {
        e.preventDefault()
        document.getElementById('main')?.focus()
      }}>Skip to content</a>
      <div class={`app${drawer.value ? ' drawer' : ''}`}>
        <Sidebar path={path} shared={{ version, health, counts, failures }} />
        {drawer.value && <div class="backdrop" onClick={() => { drawer.value = false }} />}
        <div class="column">
          <Topbar shared={{ version, health, counts, failures }} />
          {offline && (
            <div class="offline" role="alert">
              <Icon name="alert" size={14} /><span>The server does not respond. The data shown may be outdated; this page retries automatically.</span>
              <button type="button" class="link" onClick={refreshAll}>Retry now</button>
            </div>
          )}
          {identity.value?.security_mode === 'open' && (
            <div class="offline open-mode" role="note">
              <Icon name="alert" size={14} /><span>security.mode is open: every client that can connect to this server may do everything.</span>
            </div>
          )}
          <main id="main" tabIndex={-1}>
            {/* What the user may do decides what pages read and offer. */}
            <div class="page">{refusal && path !== '/settings' && path !== '/access' ? <NoAccess title={title} refusal={refusal} /> : identity.value || who.error ? page ?? <NotFound /> : <Skeleton rows={10} />}</div>
          </main>
        </div>
      </div>
      <Guard><Dialogs /></Guard>
      <Toasts />
    </>
  )
}

/** Shows what went wrong instead of a blank page. */
class Guard extends Component<{ children: ComponentChildren }, { error?: Error }> {
  override state: { error?: Error } = {}
  static override getDerivedStateFromError(error: Error) {
    return { error }
  }
  override render() {
    if (!this.state.error) return this.props.children
    return <ErrorBox what="This page has a defect" error={this.state.error} retry={() => this.setState({ error: undefined as unknown as Error })} />
  }
}

/** Shown instead of the pages to a user who may not read anything. */
function NoAccess({ title, refusal }: { title: string; refusal: string }) {
  return <Empty title={title} icon="key" page><p>{refusal} <a href={href('/access')}>My access</a></p></Empty>
}

function NotFound() {
  return <Empty title="There is no such page" icon="search" page><p>The address may be mistyped. <a href={href('/')}>Go to the overview</a></p></Empty>
}

function Sidebar({ path, shared }: { path: string; shared: Shared }) {
  const { health, counts, failures, version } = shared
  const unfinished = counts.data ? Object.entries(counts.data.by_status).reduce((n, [s, c]) => (s === 'completed' ? n : n + c), 0) : undefined
  const groups = failures.data?.groups.length
  const trouble = health.data && health.data.status !== 'healthy'
  const badge = (item: NavItem): ComponentChildren => {
    if (item.path === '/failures' && groups) return <span class="badge bad">{groups}</span>
    if (item.path === '/invocations' && unfinished) return <span class="badge" title={`${unfinished} unfinished`}>{formatCompact(unfinished)}</span>
    if (item.path === '/cluster' && trouble) return <span class="badge bad" title="needs attention">!</span>
    return null
  }
  return (
    <aside class="sidebar" aria-label="Navigation">
      <a class="brand" href={href('/')}>
        <Logo />
        <span class="brand-name">{health.data?.cluster_name ?? 'Server'}</span>
      </a>
      <nav aria-label="Pages">
        {nav.map((group, i) => (
          <ul key={i}>
            {group.map((item) => {
              const on = item.path === '/' ? path === '/' : [item.path, ...(item.also ?? [])].some((p) => path.startsWith(p))
              return (
                <li key={item.path}>
                  <a href={href(item.path)} class={on ? 'on' : ''} aria-current={on ? 'page' : undefined} title={`${item.title} (g ${item.key})`}>
                    <Icon name={item.icon} /><span>{item.title}</span>{badge(item)}
                  </a>
                </li>
              )
            })}
          </ul>
        ))}
      </nav>
      <footer>
        <span class="mono" title={version.data ? `${version.data.version} ${version.data.commit ?? ''}` : ''}>{version.data?.version ?? ''}</span>
        <button type="button" class="copy" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)" onClick={showHelp}><Icon name="help" /></button>
      </footer>
    </aside>
  )
}

function Topbar({ shared }: { shared: Shared }) {
  const { health } = shared
  const status = health.error && !health.data ? 'unreachable' : health.data?.status
  const tone = status === 'healthy' ? 'ok' : status === 'degraded' ? 'warn' : status === undefined ? 'idle' : 'bad'
  const nodes = health.data?.nodes
  return (
    <header class="topbar">
      <button type="button" class="button ghost icon-only burger" aria-label="Menu" aria-expanded={drawer.value} onClick={() => { drawer.value = !drawer.value }}><Icon name="menu" /></button>
      <button type="button" class="search-box" onClick={() => openPalette()}>
        <Icon name="search" size={14} /><span>Search or paste an id</span><kbd>/</kbd>
      </button>
      <span class="grow" />
      {!limited() && <a class={`health ${tone}`} href={href('/cluster')} title={health.data?.problems?.join('\n') || health.data?.message}>
        <i aria-hidden="true" />{status === undefined ? 'Connecting' : status === 'healthy' ? 'Healthy' : status === 'degraded' ? 'Degraded' : status === 'unreachable' ? 'Unreachable' : 'Unavailable'}
        {nodes && nodes.length > 1 && <span class="muted num health-nodes">{nodes.filter((n) => n.state === 'alive').length}/{nodes.length} nodes</span>}
      </a>}
      <button type="button" class={`live${livePaused.value ? ' off' : ''}`} onClick={() => { livePaused.value = !livePaused.value }} aria-pressed={!livePaused.value}
        title={livePaused.value ? 'Updates are off' : liveMode.value === 'stream' ? 'Updated when something changes' : 'Updated every few seconds'}>
        <i aria-hidden="true" />{livePaused.value ? 'Paused' : 'Live'}
      </button>
      <button type="button" class="button ghost zone" onClick={() => { zone.value = zone.value === 'utc' ? 'local' : 'utc' }} title="Time zone of absolute times" aria-label={`Time zone: ${zone.value === 'utc' ? 'UTC' : 'local'}`}>
        <span>{zone.value === 'utc' ? 'UTC' : 'Local'}</span>
      </button>
      <Button kind="ghost" icon={theme.value === 'system' ? 'system' : theme.value === 'dark' ? 'moon' : 'sun'} label={`Theme: ${theme.value}`}
        onClick={() => { theme.value = theme.value === 'system' ? 'light' : theme.value === 'light' ? 'dark' : 'system' }} />
    </header>
  )
}

const shortcuts: [string, string][] = [
  ['/  or  Ctrl K', 'Search, or paste an id'],
  ['g then a letter', 'Go to a page: o overview, f failures, i invocations, a awakeables, j jobs, s services, b objects, l flow control, e events, c cluster, q SQL, comma settings'],
  ['j  k', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['x', 'Select the row'],
  ['r', 'Read again now'],
  ['t', 'Change the theme'],
  ['?', 'This list'],
  ['Esc', 'Close'],
]

function showHelp(): void {
  void openDialog('Keyboard shortcuts', (close) => (
    <DialogFrame title="Keyboard shortcuts" close={close}>
      <dl class="keys">
        {shortcuts.map(([k, what]) => <div key={k}><dt>{k.split(/\s{2,}/).map((part, i) => <span key={i}>{/^(or|g then a letter)$/.test(part) ? part : <kbd>{part}</kbd>} </span>)}</dt><dd>{what}</dd></div>)}
      </dl>
    </DialogFrame>
  ))
}

function keyboard(): () => void {
  let afterG = 0
  const pressed = (e: KeyboardEvent): void => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
      e.preventDefault()
      if (!dialogOpen()) openPalette()
      return
    }
    if (e.ctrlKey || e.metaKey || e.altKey || dialogOpen()) return
    const at = e.composedPath()[0] as HTMLElement
    if (at.matches?.('input:not([type=checkbox]), textarea, select, [contenteditable=true]')) {
      if (e.key === 'Escape') at.blur()
      return
    }
    if (Date.now() - afterG < 1200) {
      afterG = 0
      const item = nav.flat().find((n) => n.key === e.key)
      if (item) {
        e.preventDefault()
        navigate(href(item.path))
        return
      }
    }
    const table = tableKeys.current
    switch (e.key) {
      case 'g':
        afterG = Date.now()
        return
      case '/':
        e.preventDefault()
        openPalette()
        return
      case '?':
        showHelp()
        return
      case 'j':
        table?.move(1)
        return
      case 'k':
        table?.move(-1)
        return
      case 'x':
        table?.toggle()
        return
      case 'r':
        refreshAll()
        return
      case 't':
        theme.value = theme.value === 'dark' ? 'light' : 'dark'
        return
      case 'Enter':
        if (!at.matches?.('a,button,summary,[role=button]')) table?.open()
    }
  }
  document.addEventListener('keydown', pressed)
  return () => document.removeEventListener('keydown', pressed)
}

export function useTitle(title: string | undefined): void {
  const [initial] = useState(title)
  useEffect(() => {
    if (title) document.title = title
  }, [title, initial])
}
