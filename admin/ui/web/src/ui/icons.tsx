// Icons: 16 × 16, drawn with lines.

const paths = {
  overview: 'M2.5 9.5 6 6l2.5 2.5 5-5M10 3.5h3.5V7M2.5 13h11',
  failures: 'M8 2 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.1',
  invocations: 'M2.5 4h11M2.5 8h11M2.5 12h7',
  services: 'M8 1.8 13.8 5v6L8 14.2 2.2 11V5zM2.2 5 8 8.2 13.8 5M8 8.2v6',
  state: 'M13.5 4c0 1.1-2.5 2-5.5 2s-5.5-.9-5.5-2 2.5-2 5.5-2 5.5.9 5.5 2zM2.5 4v8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2V4M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2',
  flow: 'M2 4.5h6.5M12 4.5h2M2 11.5h2M7.5 11.5H14M10.2 2.7v3.6M5.7 9.7v3.6',
  cluster: 'M2.5 2.5h11v4h-11zM2.5 9.5h11v4h-11zM5 4.5h.1M5 11.5h.1',
  sql: 'M2.5 3.5 6 7l-3.5 3.5M8 12.5h5.5',
  jobs: 'M3 4.2l1.2 1.2L6.5 3M3 9.7l1.2 1.2 2.3-2.4M9 4.5h5M9 10h5',
  settings: 'M8 1.8 13.4 4.9v6.2L8 14.2 2.6 11.1V4.9zM8 10.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4z',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14',
  close: 'M4 4l8 8M12 4l-8 8',
  check: 'M3 8.5 6.5 12 13 4.5',
  cross: 'M4.5 4.5l7 7M11.5 4.5l-7 7',
  copy: 'M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1',
  more: 'M3.5 8h.1M8 8h.1M12.5 8h.1',
  right: 'M6 3.5 10.5 8 6 12.5',
  down: 'M3.5 6 8 10.5 12.5 6',
  left: 'M10 3.5 5.5 8l4.5 4.5',
  play: 'M4.5 2.8 12.5 8l-8 5.2z',
  pause: 'M5 3v10M11 3v10',
  stop: 'M4 4h8v8H4z',
  restart: 'M3 8a5 5 0 1 0 1.6-3.7M3 2.5v3h3',
  minus: 'M3 8h10',
  plus: 'M8 3v10M3 8h10',
  trash: 'M2.5 4h11M6 4V2.5h4V4M4 4l.6 9.5h6.8L12 4',
  external: 'M6 3H3v10h10v-3M9 2.5h4.5V7M13 3 7.5 8.5',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.6',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7',
  moon: 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z',
  system: 'M2 3h12v8H2zM6 13.5h4M8 11v2.5',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  download: 'M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13.5h10',
  upload: 'M8 10.5V3M4.8 6 8 2.8 11.2 6M3 13.5h10',
  columns: 'M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10',
  filter: 'M2 3.5h12M4.5 8h7M6.5 12.5h3',
  star: 'M8 2l1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.3v3.5M8 5.2v.1',
  alert: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8v3.8M8 10.9v.1',
  edit: 'M10.5 3 13 5.5 6 12.5l-3 .5.5-3z',
  call: 'M2.5 8h8.5M8 4.5 11.5 8 8 11.5M14 3v10',
  key: 'M5.5 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM7.7 7.8 13.5 2M11 4.5l2 2',
  link: 'M6.5 9.5l3-3M7 5l1.8-1.8a2.8 2.8 0 0 1 4 4L11 9M9 11l-1.8 1.8a2.8 2.8 0 0 1-4-4L5 7',
  transfer: 'M2.5 5.5h10M9.5 2.5l3 3-3 3M13.5 11h-10M6.5 8l-3 3 3 3',
  mute: 'M2.5 6v4h2.5L8.5 13V3L5 6zM11 6l3.5 4M14.5 6 11 10',
  help: 'M6 6a2 2 0 1 1 2.8 1.8c-.5.3-.8.7-.8 1.4M8 11.4v.1M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13z',
  refresh: 'M13 8a5 5 0 0 1-9.2 2.7M3 8a5 5 0 0 1 9.2-2.7M12.5 2.5v3h-3M3.5 13.5v-3h3',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 16, title }: { name: IconName; size?: number; title?: string }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"
      role={title ? 'img' : undefined} aria-label={title} aria-hidden={title ? undefined : 'true'}>
      <path d={paths[name]} />
    </svg>
  )
}

/** The mark of the product. */
export function Logo() {
  return (
    <svg class="logo" width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      <rect x="1" y="1" width="18" height="18" rx="5" fill="var(--accent)" />
      <path d="M6 6.5h5.5a2.5 2.5 0 0 1 0 5H6M6 6.5v8" fill="none" stroke="var(--on-accent)" stroke-width="1.9" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  )
}

export type Shape = 'ok' | 'fail' | 'run' | 'wait' | 'retry' | 'pause' | 'sleep' | 'later' | 'ready' | 'none'

/** The shape of a status, so that it can be distinguished without colours. */
export function StatusShape({ shape, size = 12 }: { shape: Shape; size?: number }) {
  const line = { fill: 'none', stroke: 'currentColor', 'stroke-width': 1.6, 'stroke-linecap': 'round', 'stroke-linejoin': 'round' } as const
  return (
    <svg class={`shape shape-${shape}`} width={size} height={size} viewBox="0 0 12 12" aria-hidden="true">
      {shape === 'ok' && <path d="M2 6.4 4.8 9.2 10 3.4" {...line} />}
      {shape === 'fail' && <path d="M3 3l6 6M9 3l-6 6" {...line} />}
      {shape === 'run' && <path d="M3.2 1.9 10 6l-6.8 4.1z" fill="currentColor" />}
      {shape === 'wait' && <circle cx="6" cy="6" r="4.2" {...line} stroke-dasharray="2.2 2.2" />}
      {shape === 'retry' && <path d="M2 6a4 4 0 1 0 1.3-3M2 1.5V4h2.5" {...line} />}
      {shape === 'pause' && <path d="M4 2.5v7M8 2.5v7" {...line} />}
      {shape === 'sleep' && <path d="M10 7.4A4.4 4.4 0 0 1 4.6 2a4.4 4.4 0 1 0 5.4 5.4z" {...line} />}
      {shape === 'later' && <><circle cx="6" cy="6" r="4.5" {...line} /><path d="M6 3.6V6l1.6 1.2" {...line} /></>}
      {shape === 'ready' && <circle cx="6" cy="6" r="3.6" {...line} />}
      {shape === 'none' && <path d="M3 6h6" {...line} />}
    </svg>
  )
}
