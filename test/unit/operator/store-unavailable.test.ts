import { expect, test } from 'vitest';
import { StoreError } from '../../../src/store/error.ts';
import { signInByLink } from '../../rig/session.ts';
import { createApi, createOptions, startOperatorListener } from './operator-rig.ts';

const rejectUnavailable = async (): Promise<never> => {
  throw new StoreError('the database does not respond');
};

async function startListener() {
  const api = createApi({
    findTokens: rejectUnavailable,
    updateTokenLastUsed: rejectUnavailable,
    endSession: rejectUnavailable,
    isSessionEnded: rejectUnavailable,
  });
  const { port, signInUrl } = await startOperatorListener(createOptions({ api, onError: () => undefined }));
  return { url: `http://127.0.0.1:${port}`, session: await signInByLink(signInUrl ?? '') };
}

test('a failed sign-out is reported, and the session remains valid', async () => {
  const { url, session } = await startListener();
  const headers = { ...session, Origin: url };
  const response = await fetch(`${url}/api/v1/sign-out`, { method: 'POST', headers });
  expect([response.status, response.headers.get('set-cookie')]).toEqual([503, null]);
  const sessionResponse = await fetch(`${url}/api/v1/session`, { headers });
  expect([sessionResponse.status, await sessionResponse.json()]).toMatchObject([200, { actor: 'page' }]);
});
