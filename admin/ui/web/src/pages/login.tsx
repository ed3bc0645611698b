// Asks for a login when the server requires one: with an identity provider, or a token.

import { useEffect, useState } from 'preact/hooks'
import { get } from '../api/client.ts'
import type { Identity, LoginOptions } from '../api/types.ts'
import { refreshAll } from '../live.ts'
import { forgetAll } from '../resource.ts'
import { identity, keepLogoutPage, loggedIn, loginNeeded, logoutPage, setToken, users } from '../session.ts'
import { Empty, Field } from '../ui/basic.tsx'
import { closeDialogs } from '../ui/overlay.tsx'
import { Logo } from '../ui/icons.tsx'

/** The address that begins a login with the identity provider and returns to this page. */
export function startAddress(start: string, page: string): string {
  return `${start}?return=${encodeURIComponent(page)}`
}

/** Tabs tell each other about a login. */
const loginChannel = 'login'
const returnPage = '/ui/logged-in'

/** Uses the session that a login in another tab has created, if there is one. */
async function adoptSession(): Promise<void> {
  const who = await get<Identity>('/whoami')
  if (who.session && who.permissions.length > 0 && loginNeeded.peek()) proceed(who)
}

/** Shows the page again, with its dialogs if the same user has logged in. */
function proceed(who: Identity): void {
  forgetAll()
  keepLogoutPage(undefined)
  const before = identity.peek()
  if (before && (before.name !== who.name || before.session !== who.session)) {
    closeDialogs()
    users.value++
  }
  identity.value = who
  loginNeeded.value = false
  refreshAll()
}

/** The end of a login with the identity provider in a tab of its own. */
export function LoggedIn() {
  useEffect(() => {
    const channel = new BroadcastChannel(loginChannel)
    channel.postMessage('')
    channel.close()
    window.close() // forbidden by some browsers
  }, [])
  return <Empty page icon="check" title="You are logged in">Go back to the tab in which the login had ended, and go on there. This tab can be closed.</Empty>
}

/**
 * Logs in with the identity provider, if there is one. A page with unfinished work stays as it is, since the
 * login has a tab of its own then, unless its session would be one of another origin.
 */
function Provider() {
  const [options, setOptions] = useState<LoginOptions>()
  useEffect(() => {
    get<LoginOptions>('/login').then(setOptions, () => undefined) // tokens remain
  }, [])
  const provider = options?.oidc
  const apart = loggedIn() && provider?.start_url !== undefined && new URL(provider.start_url).origin === location.origin
  useEffect(() => {
    if (!apart) return
    const adopt = (): void => void adoptSession().catch(() => undefined) // the login stays
    const channel = new BroadcastChannel(loginChannel)
    channel.onmessage = adopt
    addEventListener('focus', adopt)
    return () => {
      channel.close()
      removeEventListener('focus', adopt)
    }
  }, [apart])
  if (!provider?.start_url) return null
  return (
    <>
      <a class="button primary" target={apart ? '_blank' : undefined} rel={apart ? 'noreferrer' : undefined} href={startAddress(provider.start_url, apart ? returnPage : location.pathname + location.search)} onClick={() => {
        setToken('')
        keepLogoutPage(undefined)
      }}><span>Log in with {new URL(provider.issuer).host}</span></a>
      <p class="muted">or with a token:</p>
    </>
  )
}

/** After a logout: the page of the identity provider at which its session ends as well. */
export function ProviderLogout() {
  const page = logoutPage()
  if (!page) return null
  return <p role="note">You have logged out here, and are still logged in at the identity provider. On a shared machine, also <a href={page} rel="noreferrer">log out at {new URL(page).host}</a>.</p>
}

export function Login() {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const submit = async (): Promise<void> => {
    setBusy(true)
    setError('')
    setToken(text.trim())
    try {
      const who = await get<Identity>('/whoami')
      if (who.permissions.length === 0) {
        setToken('')
        setError(who.name ? `The token “${who.name}” permits nothing. Ask an administrator for a role.` : 'The server does not know this token, or it has expired.')
      } else {
        proceed(who)
        return
      }
    } catch (err) {
      setToken('')
      setError((err as Error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="login">
      <form onSubmit={(e) => {
        e.preventDefault()
        void submit()
      }}>
        <h1><Logo /> Log in</h1>
        <ProviderLogout />
        <Provider />
        <p>The first token is in the file <code>admin.token</code> in the data directory of the node; <code>platform tokens create</code> creates others.</p>
        <Field label="Token" error={error || undefined}>
          <input class="input mono" type="password" autocomplete="current-password" spellcheck={false} required autofocus value={text} onInput={(e) => setText(e.currentTarget.value)} placeholder="plt_…" />
        </Field>
        <button type="submit" class="button primary" disabled={busy || text.trim() === ''}><span>{busy ? 'Checking…' : 'Log in'}</span></button>
      </form>
    </main>
  )
}
