/** Who is signed in sees the frame with its pages; everybody else the sign-in. */
import { Center, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Suspense } from 'react';
import { Route, Switch, useLocation, useSearchParams } from 'wouter';
import { ApiError, get } from './api/client';
import { useLive } from './api/live';
import { LiveState } from './api/live-state';
import type { Session } from './api/types';
import { Frame } from './frame';
import { pages } from './pages';
import { Fault } from './parts/fault';
import { Failure } from './parts/states';
import { SignIn } from './sign-in';

const WELCOME = 'Sign in to operate this service.';
const ENDED = 'Your session has ended. Sign in again, and you are back on this page.';

/** The service leads here from a link that lets nobody in: `?refused=link`. */
const USED =
  'This link has been used or is none. Where no password is set, restart the service: it prints another at its start.';

export function App() {
  const [search] = useSearchParams();
  const session = useQuery({ queryKey: ['session'], queryFn: () => get<Session>('/session'), staleTime: 60_000 });
  if (session.isPending) return <Waiting />;
  if (session.error instanceof ApiError && session.error.status === 401) {
    const welcome = search.get('refused') === 'link' ? USED : WELCOME;
    return <SignIn reason={session.data === undefined ? welcome : ENDED} />;
  }
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
