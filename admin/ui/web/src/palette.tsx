// Search over everything: pages, services, handlers, deployments, ids, keys, and commands.

import { useMemo, useState } from 'preact/hooks'
import { get, request } from './api/client.ts'
import type { Deployment, InvocationPage, Service } from './api/types.ts'
import { kindOfID } from './lib/format.ts'
import { statuses } from './lib/filters.ts'
import { useResource } from './resource.ts'
import { href, navigate, segment } from './router.ts'
import { theme, views, visits, zone, type Visit } from './prefs.ts'
import { nav } from './nav.ts'
import { may } from './session.ts'
import { objectOf } from './pages/common.tsx'
import { Icon, type IconName } from './ui/icons.tsx'
import { openDialog } from './ui/overlay.tsx'
import { typeName } from './ui/basic.tsx'

interface Item {
  id: string
  title: string
  hint: string
  icon: IconName
  run: () => void
}

let open = false

export function openPalette(initial = ''): void {
  if (open) return
  open = true
  void openDialog('Search', (close) => <Palette close={close} initial={initial} />).then(() => {
    open = false
  })
}

const visited = (v: Visit): Item => ({ id: `visit${v.id}`, title: v.target, hint: `Opened recently · …${v.id.slice(-6)}`, icon: 'clock', run: go(`/invocations/${segment(v.id)}`) })

const go = (path: string, params?: Record<string, string>): (() => void) => () => navigate(href(path, params))

function Palette({ close, initial }: { close: () => void; initial: string }) {
  const [text, setText] = useState(initial)
  const [at, setAt] = useState(0)
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 0 })
  const deployments = useResource('deployments', (s) => get<{ deployments: Deployment[] }>('/deployments', s), { every: 0 })
  const wanted = text.trim()
  const isWord = wanted.length > 0 && kindOfID(wanted) === undefined
  // An exact object key or idempotency key.
  const keyed = useResource(isWord && wanted.length >= 2 ? `key:${wanted}` : undefined, (signal) => request<InvocationPage>(`/invocations?limit=5&key=${encodeURIComponent(wanted)}`, { signal, retries: 0 }), { every: 0 })

  const items = useMemo(() => {
    const out: Item[] = []
    const kind = kindOfID(wanted)
    if (kind === 'invocation') out.push({ id: 'inv', title: wanted, hint: 'Open the invocation', icon: 'invocations', run: go(`/invocations/${segment(wanted)}`) })
    if (kind === 'deployment') {
      out.push({ id: 'dp', title: wanted, hint: 'Open the deployment', icon: 'services', run: go(`/deployments/${segment(wanted)}`) })
      out.push({ id: 'dpi', title: wanted, hint: 'Invocations on this deployment', icon: 'filter', run: go('/invocations', { deployment: wanted }) })
    }
    if (kind === 'vqueue') out.push({ id: 'vq', title: wanted, hint: 'Queues', icon: 'flow', run: go('/flow-control/queues', { id: wanted }) })
    if (kind === 'awakeable') out.push({ id: 'aw', title: wanted, hint: 'Find the awakeable', icon: 'link', run: go('/awakeables', { id: wanted }) })
    if (kind) return out
    const lower = wanted.toLowerCase()
    const scored: [number, Item][] = []
    const add = (item: Item, words: string): void => {
      const score = rank(words.toLowerCase(), lower)
      if (score > 0) scored.push([score, item])
    }
    for (const p of nav.flat()) add({ id: `p${p.path}`, title: p.title, hint: 'Page', icon: p.icon, run: go(p.path) }, p.title)
    for (const [path, title] of [['/kafka-clusters', 'Kafka clusters'], ['/access', 'My access'], ['/tokens', 'Tokens'], ['/audit', 'Audit log']] as const) add({ id: `p${path}`, title, hint: 'Page', icon: 'settings', run: go(path) }, title)
    for (const s of services.data?.services ?? []) {
      add({ id: `s${s.name}`, title: s.name, hint: typeName(s.ty), icon: 'services', run: go(`/services/${segment(s.name)}`) }, s.name)
      if (lower.length > 1) {
        for (const h of s.handlers) add({ id: `h${s.name}/${h.name}`, title: `${s.name}/${h.name}`, hint: 'Invoke this handler', icon: 'call', run: go(`/services/${segment(s.name)}`, { invoke: h.name }) }, `${s.name}/${h.name}`)
        add({ id: `i${s.name}`, title: `Invocations of ${s.name}`, hint: 'List', icon: 'filter', run: go('/invocations', { service: s.name }) }, `invocations of ${s.name}`)
      }
    }
    if (lower.length > 1) {
      for (const d of deployments.data?.deployments ?? []) add({ id: d.id, title: d.uri ?? d.arn ?? d.id, hint: 'Deployment', icon: 'link', run: go(`/deployments/${segment(d.id)}`) }, `${d.uri ?? ''} ${d.arn ?? ''} ${d.id}`)
      for (const s of statuses) add({ id: `st${s}`, title: `Invocations that are ${s}`, hint: 'List', icon: 'filter', run: go('/invocations', { status: s }) }, `${s} invocations`)
      for (const v of views.value) add({ id: `v${v.name}`, title: v.name, hint: 'Saved view', icon: 'star', run: () => navigate(`${href('/invocations')}${v.search}`) }, v.name)
      if (may('deploy')) add({ id: 'c-register', title: 'Register a deployment', hint: 'Command', icon: 'plus', run: go('/services', { register: 'true' }) }, 'register a deployment add')
      add({ id: 'c-dark', title: 'Dark theme', hint: 'Command', icon: 'moon', run: () => { theme.value = 'dark' } }, 'dark theme')
      add({ id: 'c-light', title: 'Light theme', hint: 'Command', icon: 'sun', run: () => { theme.value = 'light' } }, 'light theme')
      add({ id: 'c-zone', title: zone.value === 'utc' ? 'Show local times' : 'Show times in UTC', hint: 'Command', icon: 'clock', run: () => { zone.value = zone.value === 'utc' ? 'local' : 'utc' } }, 'utc local time zone')
      add({ id: 'c-bundle', title: 'Open an invocation bundle', hint: 'Command', icon: 'upload', run: go('/bundle') }, 'open import invocation bundle file')
    }
    // Without a word: what was opened last. With one: by target.
    if (lower === '') for (const v of visits.value.slice(0, 5)) out.push(visited(v))
    else if (lower.length > 1) for (const v of visits.value) add(visited(v), `${v.target} ${v.id}`)
    scored.sort((a, b) => b[0] - a[0])
    out.push(...scored.slice(0, 12).map(([, item]) => item))
    const found = keyed.data?.invocations ?? []
    const objects = new Set<string>()
    for (const i of found) {
      const name = `${i.scope ? `${i.scope}/` : ''}${i.target_service_name}/${i.target_service_key}`
      if (i.target_service_ty !== 'service' && !objects.has(name)) {
        objects.add(name)
        out.push({ id: `o${name}`, title: name, hint: typeName(i.target_service_ty), icon: 'key', run: () => navigate(objectOf(i)) })
      }
    }
    if (isWord) {
      if (found.length > 0) out.push({ id: 'key', title: `Invocations with the key “${wanted}”`, hint: 'List', icon: 'filter', run: go('/invocations', { key: wanted }) })
      else if (scored.length === 0) out.push({ id: 'key', title: `Find the key “${wanted}”`, hint: 'Invocations', icon: 'filter', run: go('/invocations', { key: wanted }) })
    }
    return out
  }, [wanted, services.data, deployments.data, keyed.data])
  const index = Math.min(at, items.length - 1)

  return (
    <div class="palette" onKeyDown={(e) => {
      if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
        e.preventDefault()
        if (items.length > 0) setAt((index + (e.key === 'ArrowDown' ? 1 : items.length - 1)) % items.length)
      }
      if (e.key === 'Enter' && items[index]) {
        e.preventDefault()
        close()
        items[index].run()
      }
    }}>
      <div class="palette-input">
        <Icon name="search" />
        <input autofocus value={text} placeholder="Id, service, handler, key or command" aria-label="Search" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={items[index] ? `palette-${index}` : undefined}
          autocomplete="off" spellcheck={false} onInput={(e) => {
            setText(e.currentTarget.value)
            setAt(0)
          }} />
        <kbd>Esc</kbd>
      </div>
      <ul id="palette-list" role="listbox" aria-label="Results">
        {items.map((item, i) => (
          <li key={item.id} id={`palette-${i}`} role="option" aria-selected={i === index} class={i === index ? 'on' : ''} onPointerMove={() => setAt(i)} onClick={() => {
            close()
            item.run()
          }}>
            <Icon name={item.icon} /><span class="palette-title"><bdi>{item.title}</bdi></span><span class="palette-hint">{item.hint}</span>
          </li>
        ))}
      </ul>
      {items.length === 0 && <p class="palette-none">Nothing found for “{wanted}”.</p>}
    </div>
  )
}

/** How well a text matches: at the start, at a word, anywhere, or its letters in order. */
function rank(text: string, want: string): number {
  if (want === '') return 1
  const i = text.indexOf(want)
  if (i === 0) return 100 - text.length / 100
  if (i > 0) return (/[^a-z0-9]/.test(text[i - 1]!) ? 80 : 60) - text.length / 100
  let at = 0
  for (const c of want) {
    at = text.indexOf(c, at) + 1
    if (at === 0) return 0
  }
  return want.length > 2 ? 10 : 0
}
