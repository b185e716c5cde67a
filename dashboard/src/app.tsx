/** The app: the frame with the pages for a signed-in operator, otherwise the sign-in page. */
import { Center, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Suspense } from 'react';
import { Redirect, Route, Switch, useLocation, useSearchParams } from 'wouter';
import type { Session } from '../../src/operator/schemas.ts';
import { ApiError, get } from './api/client';
import { LiveConnectionContext } from './api/live-connection';
import { useLiveUpdates } from './api/live-updates';
import { readSessionSecret } from './api/session-secret';
import { Frame } from './frame';
import { pages } from './pages';
import { ErrorBoundary } from './parts/error-boundary';
import { ErrorAlert } from './parts/page-states';
import { useTimeZone } from './parts/use-time-zone';
import { SignIn, SignInWithLink } from './sign-in';

const SIGN_IN_TEXT = 'Sign in to the operator dashboard.';
const SESSION_ENDED_TEXT = 'Your session has ended. Sign in again to return to this page.';

/** The text that is shown for `?refused=link`. */
const INVALID_LINK_TEXT =
  'This sign-in link is invalid or has already been used. If no password is set, restart the service: it prints a new link when it starts.';

export function App() {
  const [search] = useSearchParams();
  const [location] = useLocation();
  const link = location === '/sign-in' ? search.get('link') : null;
  // Without a session secret there is no session, so the request for the session is omitted.
  if (link !== null && readSessionSecret() === null) return <SignInWithLink link={link} />;
  return <SessionGate link={link} refused={search.get('refused') === 'link'} />;
}

/** Loads the session. `link` is the secret of the sign-in link in this URL; `refused`: the service refused the link. */
function SessionGate({ link, refused }: { readonly link: string | null; readonly refused: boolean }) {
  const session = useQuery({ queryKey: ['session'], queryFn: () => get<Session>('/session'), staleTime: 60_000 });
  if (session.isPending) return <Spinner />;
  if (session.error instanceof ApiError && session.error.status === 401) {
    if (link !== null) return <SignInWithLink link={link} />;
    const prompt = refused ? INVALID_LINK_TEXT : SIGN_IN_TEXT;
    return <SignIn reason={session.data === undefined ? prompt : SESSION_ENDED_TEXT} />;
  }
  if (session.data !== undefined && link !== null) return <Redirect to="/" replace />;
  if (session.data === undefined) return <ErrorAlert error={session.error} retry={() => session.refetch()} />;
  return <SignedIn session={session.data} />;
}

function SignedIn({ session }: { readonly session: Session }) {
  const liveConnection = useLiveUpdates();
  // Every page is rendered again when the time zone changes, because times are formatted during rendering.
  useTimeZone();
  const [location] = useLocation();
  return (
    <LiveConnectionContext value={liveConnection}>
      <Frame session={session} connection={liveConnection}>
        <ErrorBoundary resetKey={location}>
          <Suspense fallback={<Spinner />}>
            <Switch>
              {pages.map(({ path, Page }) => (
                <Route key={path} path={path}>
                  {(parameters) => <Page parameters={parameters} session={session} />}
                </Route>
              ))}
            </Switch>
          </Suspense>
        </ErrorBoundary>
      </Frame>
    </LiveConnectionContext>
  );
}

function Spinner() {
  return (
    <Center mih="40vh">
      <Loader aria-label="Loading" />
    </Center>
  );
}
