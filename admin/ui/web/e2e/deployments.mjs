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
}
