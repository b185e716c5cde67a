/** Lists every page and its path. A page is loaded when it is first shown. */
import { type ComponentType, lazy } from 'react';
import type { Session } from '../../../src/operator/schemas.ts';
import { loadPage } from './load-page';

export interface PageProps {
  readonly parameters: Readonly<Record<string, string | undefined>>;
  readonly session: Session;
}

export const pages: readonly { readonly path: string; readonly Page: ComponentType<PageProps> }[] = [
  {
    path: '/',
    Page: lazy(() => loadPage(import('./overview')).then(({ OverviewPage }) => ({ default: OverviewPage }))),
  },
  {
    path: '/messages',
    Page: lazy(() => loadPage(import('./messages')).then(({ MessagesPage }) => ({ default: MessagesPage }))),
  },
  {
    path: '/messages/:id',
    Page: lazy(() => loadPage(import('./message')).then(({ MessagePage }) => ({ default: MessagePage }))),
  },
  {
    path: '/deliverability',
    Page: lazy(() =>
      loadPage(import('./deliverability')).then(({ DeliverabilityPage }) => ({ default: DeliverabilityPage })),
    ),
  },
  // The list of the inbox and the selected message share one route, so that the list stays on the screen when another
  // message is selected.
  {
    path: '/inbox/:id?',
    Page: lazy(() => loadPage(import('./inbox')).then(({ InboxPage }) => ({ default: InboxPage }))),
  },
  {
    path: '/accounts',
    Page: lazy(() => loadPage(import('./accounts')).then(({ AccountsPage }) => ({ default: AccountsPage }))),
  },
  {
    path: '/accounts/:name',
    Page: lazy(() => loadPage(import('./account')).then(({ AccountPage }) => ({ default: AccountPage }))),
  },
  {
    path: '/domains',
    Page: lazy(() => loadPage(import('./domains')).then(({ DomainsPage }) => ({ default: DomainsPage }))),
  },
  {
    path: '/domains/:name',
    Page: lazy(() => loadPage(import('./domain')).then(({ DomainPage }) => ({ default: DomainPage }))),
  },
  {
    path: '/suppressions',
    Page: lazy(() =>
      loadPage(import('./suppressions')).then(({ SuppressionsPage }) => ({ default: SuppressionsPage })),
    ),
  },
  {
    path: '/routes',
    Page: lazy(() => loadPage(import('./routes')).then(({ RoutesPage }) => ({ default: RoutesPage }))),
  },
  {
    path: '/holds',
    Page: lazy(() => loadPage(import('./holds')).then(({ HoldsPage }) => ({ default: HoldsPage }))),
  },
  {
    path: '/webhooks',
    Page: lazy(() => loadPage(import('./webhooks')).then(({ WebhooksPage }) => ({ default: WebhooksPage }))),
  },
  {
    path: '/webhooks/:id',
    Page: lazy(() => loadPage(import('./webhook')).then(({ WebhookPage }) => ({ default: WebhookPage }))),
  },
  {
    path: '/feedback',
    Page: lazy(() => loadPage(import('./feedback')).then(({ FeedbackPage }) => ({ default: FeedbackPage }))),
  },
  {
    path: '/feedback/:id',
    Page: lazy(() => loadPage(import('./report')).then(({ ReportPage }) => ({ default: ReportPage }))),
  },
  {
    path: '/providers',
    Page: lazy(() => loadPage(import('./providers')).then(({ ProvidersPage }) => ({ default: ProvidersPage }))),
  },
  {
    path: '/api-reference',
    Page: lazy(() =>
      loadPage(import('./api-reference')).then(({ ApiReferencePage }) => ({ default: ApiReferencePage })),
    ),
  },
  {
    path: '/health',
    Page: lazy(() => loadPage(import('./health')).then(({ HealthPage }) => ({ default: HealthPage }))),
  },
  {
    path: '/tokens',
    Page: lazy(() => loadPage(import('./tokens')).then(({ TokensPage }) => ({ default: TokensPage }))),
  },
  {
    path: '/settings',
    Page: lazy(() => loadPage(import('./settings')).then(({ SettingsPage }) => ({ default: SettingsPage }))),
  },
  { path: '/audit', Page: lazy(() => loadPage(import('./audit')).then(({ AuditPage }) => ({ default: AuditPage }))) },
  {
    path: '*',
    Page: lazy(() => loadPage(import('./not-found')).then(({ NotFoundPage }) => ({ default: NotFoundPage }))),
  },
];
