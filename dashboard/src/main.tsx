/** The page's start: providers around the app. */
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './page.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError } from './api/client';
import { App } from './app';
import { Fault } from './parts/fault';
import { LastWord } from './parts/last-word';
import { cssVariables, theme } from './theme';

/** Whatever is refused for want of a session makes the page ask who is signed in: nobody, and the sign-in is shown in its place. */
function onError(error: Error): void {
  const { status } = queries.getQueryState(['session']) ?? {};
  if (error instanceof ApiError && error.status === 401 && status === 'success') {
    void queries.invalidateQueries({ queryKey: ['session'] });
  }
}

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      // Changes are told by events (api/live.ts); what was missed is asked again when the window is looked at.
      staleTime: 5_000,
      retry: (count, error) => count < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
});

/** The style tags that the component library makes must carry the page's nonce. */
function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="postrider-nonce"]')?.content ?? '';
}

// Its dialogs lock the page's scrolling by a style tag of another package, which looks for the nonce here.
Object.assign(globalThis, { __webpack_nonce__: nonce() });

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <Fault of="" shown={(error) => <LastWord error={error} />}>
        <MantineProvider
          theme={theme}
          cssVariablesResolver={cssVariables}
          defaultColorScheme="auto"
          getStyleNonce={nonce}
        >
          <Notifications position="top-right" />
          <QueryClientProvider client={queries}>
            <App />
          </QueryClientProvider>
        </MantineProvider>
      </Fault>
    </StrictMode>,
  );
}
