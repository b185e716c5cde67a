/** Who is signed in sees the frame with its pages; everybody else the sign-in. */
import { Center, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Suspense } from 'react';
import { Redirect, Route, Switch, useLocation, useSearchParams } from 'wouter';
import type { Session } from '../../src/operator/schemas.ts';
import { ApiError, get } from './api/client';
import { useLive } from './api/live';
import { LiveState } from './api/live-state';
import { sessionSecret } from './api/secret';
import { Frame } from './frame';
import { pages } from './pages';
import { Fault } from './parts/fault';
import { Failure } from './parts/states';
import { SignIn, SignInByLink } from './sign-in';

const WELCOME = 'Sign in to operate this service.';
const ENDED = 'Your session has ended. Sign in again, and you are back on this page.';

/** A link that lets nobody in leads here: `?refused=link`. */
const USED =
  'This link has been used or is none. Where no password is set, restart the service: it prints another at its start.';

export function App() {
  const [search] = useSearchParams();
  const [location] = useLocation();
  const link = location === '/sign-in' ? search.get('link') : null;
  // Without its secret no session holds: there is none to ask for.
  if (link !== null && sessionSecret() === null) return <SignInByLink link={link} />;
  return <Known link={link} refused={search.get('refused') === 'link'} />;
}

/** Asks whose session it is. `link` is the word of a sign-in link that is open; `refused` where it has let nobody in. */
function Known({ link, refused }: { readonly link: string | null; readonly refused: boolean }) {
  const session = useQuery({ queryKey: ['session'], queryFn: () => get<Session>('/session'), staleTime: 60_000 });
  if (session.isPending) return <Waiting />;
  if (session.error instanceof ApiError && session.error.status === 401) {
    if (link !== null) return <SignInByLink link={link} />;
    const welcome = refused ? USED : WELCOME;
    return <SignIn reason={session.data === undefined ? welcome : ENDED} />;
  }
  if (session.data !== undefined && link !== null) return <Redirect to="/" replace />;
  if (session.data === undefined) return <Failure error={session.error} retry={() => session.refetch()} />;
  return <SignedIn session={session.data} />;
}

function SignedIn({ session }: { readonly session: Session }) {
  const live = useLive();
  const [location] = useLocation();
  return (
    <LiveState value={live}>
      <Frame session={session} live={live}>
        <Fault of={location}>
          <Suspense fallback={<Waiting />}>
            <Switch>
              {pages.map(({ path, Page }) => (
                <Route key={path} path={path}>
                  {(parameters) => <Page parameters={parameters} session={session} />}
                </Route>
              ))}
            </Switch>
          </Suspense>
        </Fault>
      </Frame>
    </LiveState>
  );
}

function Waiting() {
  return (
    <Center mih="40vh">
      <Loader aria-label="Loading" />
    </Center>
  );
}
