// Tests of logins with an identity provider: the one of test/oidc.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { axe, noProblems, open, selected, test } from './lib.mjs'
import { World, freePorts, until } from './world.mjs'

const provider = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../../../test/oidc')

export async function testLogin() {
  const name = 'login: a user logs in with the identity provider, and out'
  const renewed = 'login: a session that ends in a dialog is renewed in another tab'
  if (!selected(name) && !selected(renewed)) return
  if (!existsSync(path.join(provider, 'node_modules/oidc-provider'))) {
    console.log('SKIPPED: the identity provider of the test is not installed; run `make oidc-deps`')
    return
  }
  const [port] = await freePorts(1)
  const issuer = `http://127.0.0.1:${port}`
  const world = await World.start({
    env: (admin) => ({
      PLATFORM_SECURITY__MODE: 'strict', PLATFORM_EXPERIMENTAL_ENABLE_PROTOCOL_V7: 'true', PLATFORM_EXPERIMENTAL_ENABLE_VQUEUES: 'true',
      PLATFORM_SECURITY__OIDC__ISSUER: issuer, PLATFORM_SECURITY__OIDC__CLIENT_ID: 'ui', PLATFORM_SECURITY__OIDC__EXTERNAL_URL: admin,
      PLATFORM_SECURITY__OIDC__SCOPES: '["groups"]', PLATFORM_SECURITY__OIDC__ROLES_CLAIM: 'groups', PLATFORM_SECURITY__OIDC__ROLES: '{ ops = "operator" }',
    }),
  })
  world.run(process.execPath, [path.join(provider, 'provider.mjs'), String(port), `${world.admin}/login/callback`], process.env)
  try {
    await until('the start of the identity provider', async () => (await fetch(`${issuer}/.well-known/openid-configuration`)).ok)
    await test(name, async () => {
      // The pages of the provider name a font of another site, which they do without.
      const fonts = 'https://fonts.googleapis.com'
      const t = await open(world, '/ui/settings', { allow: [/Failed to load resource/], others: [issuer, fonts] })
      await t.page.route(`${fonts}/**`, (r) => r.abort())
      const button = t.page.getByRole('link', { name: `Log in with 127.0.0.1:${port}` })
      await button.waitFor()
      assert.deepEqual(await axe(t.page), [])
      await button.click()
      await t.page.locator('input[name=login]').fill('ada+ops')
      await t.page.locator('input[name=password]').fill('any')
      await t.page.locator('button[type=submit]').click()
      await t.page.locator('button[type=submit]').click() // consent
      await t.page.getByText('oidc:ada+ops').waitFor()
      assert.equal(new URL(t.page.url()).pathname, '/ui/settings')
      assert.equal(await t.page.evaluate(() => document.cookie), '', 'scripts can read the session')
      await t.page.reload()
      await t.page.getByRole('button', { name: 'Log out' }).click()
      await button.waitFor()
      await t.page.reload()
      await button.waitFor()
      // The provider would log in again without asking, until its session has ended as well.
      const logout = t.page.getByRole('link', { name: `log out at 127.0.0.1:${port}` })
      assert.equal(new URL(await logout.getAttribute('href')).searchParams.get('client_id'), 'ui')
      assert.deepEqual(await axe(t.page), [])
      await logout.click()
      await t.page.locator('button[value=yes]').click()
      await t.page.goto(`${world.admin}/ui/settings`)
      await button.click()
      await t.page.locator('input[name=login]').waitFor()
      noProblems(t)
      await t.close()
    })
    await test(renewed, async () => {
      const fonts = 'https://fonts.googleapis.com'
      const t = await open(world, '/ui/', { allow: [/Failed to load resource/], others: [issuer, fonts] })
      await t.page.context().route(`${fonts}/**`, (r) => r.abort())
      const button = t.page.getByRole('link', { name: `Log in with 127.0.0.1:${port}` })
      const fill = async (page, account) => {
        await page.locator('input[name=login]').fill(account)
        await page.locator('input[name=password]').fill('any')
        await page.locator('button[type=submit]').click()
        await page.locator('button[type=submit]').click() // consent
      }
      await button.click()
      await fill(t.page, 'eve+ops')
      await t.page.getByRole('heading', { name: 'Overview' }).waitFor()
      await t.page.goto(`${world.admin}/ui/flow-control/rules`)
      await t.page.getByRole('button', { name: 'New rule' }).first().click()
      const pattern = t.page.getByRole('dialog').getByLabel('Pattern')
      await pattern.fill('tenants/*')
      for (const [account, keeps] of [['eve+ops', true], ['mallory+ops', false]]) {
        // The sessions of the server and of the provider end without a notice to the page.
        await t.page.evaluate(() => fetch('/logout', { method: 'POST' }))
        await t.page.context().clearCookies()
        await button.waitFor()
        assert.deepEqual(await axe(t.page), [])
        const [tab] = await Promise.all([t.page.context().waitForEvent('page'), button.click()])
        await fill(tab, account)
        await t.page.getByRole('dialog', { name: 'Log in' }).waitFor({ state: 'detached' })
        if (keeps) assert.equal(await pattern.inputValue(), 'tenants/*')
        else await pattern.waitFor({ state: 'detached' })
        if (!tab.isClosed()) await tab.close()
      }
      noProblems(t)
      await t.close()
    })
  } finally {
    await world.stop()
  }
}
