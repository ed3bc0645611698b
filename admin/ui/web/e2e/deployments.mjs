// Tests of deployments that nothing needs any longer.

import assert from 'node:assert/strict'
import { axe, noProblems, open, test } from './lib.mjs'

export async function testDeployments(w) {
  await test('drained deployments are removed together, and those in use are kept', async () => {
    const again = (uri) => w.api('/deployments', { method: 'POST', body: { uri, force: true } })
    const drained = (await again(w.service.replace('127.0.0.1', 'localhost'))).id
    await again(w.service) // has the newest revisions again
    const t = await open(w, '/ui/deployments')
    await t.settled()
    await t.page.getByRole('button', { name: 'Remove drained' }).click()
    const dialog = t.page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Remove 1 deployment' }).waitFor()
    assert.deepEqual(await axe(t.page), [])
    await dialog.getByRole('checkbox').first().uncheck()
    assert.equal(await dialog.getByRole('button', { name: 'Remove 0 deployments' }).isDisabled(), true)
    await dialog.getByRole('checkbox').first().check()
    await dialog.getByRole('button', { name: 'Remove 1 deployment' }).click()
    await dialog.waitFor({ state: 'detached' })
    await t.page.getByText('1 deployment removed').waitFor()
    const left = (await w.api('/deployments')).deployments.map((d) => d.id)
    assert.equal(left.includes(drained), false)
    assert.equal(left.length > 0, true)
    noProblems(t)
    await t.close()
  })

  await test('a deployment that is in use is not removed by mistake, and one that is not is removed', async () => {
    const again = (uri) => w.api('/deployments', { method: 'POST', body: { uri, force: true } })
    const drained = (await again(w.service.replace('127.0.0.1', 'localhost'))).id
    const inUse = (await again(w.service)).id
    const t = await open(w, `/ui/deployments/${inUse}`, { allow: [/status of 404/] })
    const dialog = t.page.getByRole('dialog')
    const remove = dialog.getByRole('button', { name: 'Remove', exact: true })
    await t.page.getByRole('button', { name: 'Remove', exact: true }).click()
    await dialog.getByText('Type remove to confirm').waitFor()
    assert.equal(await remove.isDisabled(), true)
    assert.deepEqual(await axe(t.page), [])
    await t.page.keyboard.press('Escape')
    await t.page.goto(`${w.admin}/ui/deployments/${drained}`)
    await t.page.getByText('drained').first().waitFor()
    await t.page.getByRole('button', { name: 'Remove', exact: true }).click()
    await remove.click()
    await dialog.waitFor({ state: 'detached' })
    const left = (await w.api('/deployments')).deployments.map((d) => d.id)
    assert.deepEqual([left.includes(drained), left.includes(inUse)], [false, true])
    noProblems(t)
    await t.close()
  })

  await test('the registration of a known address offers to replace its deployment', async () => {
    const before = (await w.api('/deployments')).deployments.find((d) => d.uri === `${w.service}/`)
    const t = await open(w, '/ui/services?register=true')
    const dialog = t.page.getByRole('dialog')
    await dialog.getByPlaceholder('http://localhost:9080').fill(w.service)
    await dialog.getByRole('button', { name: 'Check' }).click()
    await dialog.getByText(`This address is registered as ${before.id}`).waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Register', exact: true }).count(), 0, 'it would change nothing')
    assert.deepEqual(await axe(t.page), [])
    await dialog.getByRole('button', { name: 'Replace it' }).click()
    await dialog.getByRole('button', { name: 'Register', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    const after = (await w.api('/deployments')).deployments.find((d) => d.uri === `${w.service}/`)
    assert.notDeepEqual(after.services.map((s) => s.revision), before.services.map((s) => s.revision), 'new revisions exist')
    noProblems(t)
    await t.close()
  })
}
