// The pages of the side bar.

import type { IconName } from './ui/icons.tsx'

export interface NavItem {
  path: string
  title: string
  icon: IconName
  key: string
  /** Paths of other pages that belong to it. */
  also?: readonly string[]
}

/** Pages of the side bar, with the letter that goes there after g. */
export const nav: readonly (readonly NavItem[])[] = [
  [
    { path: '/', title: 'Overview', icon: 'overview', key: 'o' },
    { path: '/failures', title: 'Failures', icon: 'failures', key: 'f' },
    { path: '/invocations', title: 'Invocations', icon: 'invocations', key: 'i' },
    { path: '/awakeables', title: 'Awakeables', icon: 'link', key: 'a' },
    { path: '/jobs', title: 'Jobs', icon: 'jobs', key: 'j' },
  ],
  [
    { path: '/services', title: 'Services', icon: 'services', key: 's', also: ['/deployments'] },
    { path: '/objects', title: 'Objects', icon: 'state', key: 'b' },
    { path: '/flow-control', title: 'Flow control', icon: 'flow', key: 'l' },
    { path: '/subscriptions', title: 'Events', icon: 'call', key: 'e', also: ['/kafka-clusters'] },
  ],
  [
    { path: '/cluster', title: 'Cluster', icon: 'cluster', key: 'c' },
    { path: '/sql', title: 'SQL', icon: 'sql', key: 'q' },
    { path: '/settings', title: 'Settings', icon: 'settings', key: ',', also: ['/access', '/tokens', '/audit'] },
  ],
]
