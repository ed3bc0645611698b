// The token of the user of this browser tab, and its permissions.

import { signal } from '@preact/signals'
import type { Identity } from './api/types.ts'

export const tokenKey = 'ui.token'

function stored(): string {
  try {
    return localStorage.getItem(tokenKey) ?? ''
  } catch {
    return '' // no storage
  }
}

/** Takes the token from a link /ui/#token=…, and removes it from the address and the history. */
export function fromAddress(hash: string): string | undefined {
  return /^#token=([A-Za-z0-9_.~+/=-]{20,})$/.exec(hash)?.[1]
}

/** The token that requests are sent with; empty for none. */
export const token = signal(stored())

/** The server refused a request because it has no valid token. */
export const loginNeeded = signal(false)

/** The number of users who have logged in one after the other. */
export const users = signal(0)

/** The principal that the server authenticated; undefined until it is known. */
export const identity = signal<Identity | undefined>(undefined)

/** Whether a login is, or was until it ended, that of the user of this page. */
export function loggedIn(): boolean {
  return identity.value !== undefined && identity.value.permissions.length > 0
}

/** Whether the user may see some services or scopes only, and nothing of the whole cluster. */
export function limited(who: Identity | undefined = identity.value): boolean {
  return who?.services !== undefined || who?.scopes !== undefined
}

export function setToken(text: string): void {
  token.value = text
  try {
    if (text === '') localStorage.removeItem(tokenKey)
    else localStorage.setItem(tokenKey, text)
  } catch {
    // full or forbidden: the user logs in again in the next tab
  }
}

/** The headers that requests to the admin API need. */
export function credentials(): Record<string, string> {
  return token.peek() === '' ? {} : { authorization: `Bearer ${token.peek()}` }
}

const logoutKey = 'ui.logout'

/** Keeps the address at which the identity provider ends its session, in this tab until the next login. */
export function keepLogoutPage(address: string | undefined): void {
  try {
    if (address === undefined) sessionStorage.removeItem(logoutKey)
    else sessionStorage.setItem(logoutKey, address)
  } catch {
    // no storage: the link is not shown
  }
}

/** The address that keepLogoutPage kept. */
export function logoutPage(): string | undefined {
  try {
    const address = sessionStorage.getItem(logoutKey) ?? ''
    return /^https?:\/\//.test(address) && URL.canParse(address) ? address : undefined
  } catch {
    return undefined
  }
}

/** What routes of the admin API require, and the least role that has it. */
export const roles = {
  view: 'viewer', metrics: 'viewer', payloads: 'reader', complete: 'callback', invoke: 'invoker', operate: 'operator', deploy: 'deployer', secure: 'security', administer: 'admin', profile: 'admin',
} as const

export type Permission = keyof typeof roles

/** Whether the user may do something, as far as known: the server decides. */
export function may(permission: Permission, who: Identity | undefined = identity.value): boolean {
  return who === undefined || who.permissions.includes(permission)
}

/** Why the user may not do something; undefined if it may. */
export function refusalOf(permission: Permission, who: Identity | undefined = identity.value): string | undefined {
  if (may(permission, who)) return undefined
  return `Your ${who?.session ? 'account' : 'token'}${who?.name ? ` “${who.name}”` : ''} does not permit this. It needs the role ${roles[permission]}.`
}
