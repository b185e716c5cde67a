/** Entry point: renders the app inside the context providers. */
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './styles/base.css';
import './styles/frame.css';
import './styles/parts.css';
import './page.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError, ApiTimeout } from './api/client';
import { App } from './app';
import { loadFonts } from './fonts';
import { ErrorBoundary } from './parts/error-boundary';
import { FatalError } from './parts/fatal-error';
import { getCssVariables, theme } from './theme';

/** Reloads the session query if a request is refused with 401. Without a session the app shows the sign-in page. */
function onError(error: Error): void {
  const { status } = queryClient.getQueryState(['session']) ?? {};
  if (error instanceof ApiError && error.status === 401 && status === 'success') {
    void queryClient.invalidateQueries({ queryKey: ['session'] });
  }
}

const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      // Live updates reload changed data (api/live-updates.ts). When the window receives the focus, data older than
      // `staleTime` is reloaded.
      staleTime: 5_000,
      retry: (count, error) =>
        count < 2 &&
        !(error instanceof ApiTimeout) &&
        !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
});

/** Returns the nonce of the content security policy. The style tags that Mantine creates must have this nonce. */
function readNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="postrider-nonce"]')?.content ?? '';
}

// To prevent scrolling, a Mantine dialog uses a package that adds a style tag. This package reads the nonce from the
// global variable `__webpack_nonce__`.
Object.assign(globalThis, { __webpack_nonce__: readNonce() });

const root = document.getElementById('root');
if (root !== null) {
  await loadFonts();
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary resetKey="" renderError={(error) => <FatalError error={error} />}>
        <MantineProvider
          theme={theme}
          cssVariablesResolver={getCssVariables}
          defaultColorScheme="auto"
          getStyleNonce={readNonce}
        >
          <Notifications position="top-right" />
          <QueryClientProvider client={queryClient}>
            <App />
          </QueryClientProvider>
        </MantineProvider>
      </ErrorBoundary>
    </StrictMode>,
  );
}
