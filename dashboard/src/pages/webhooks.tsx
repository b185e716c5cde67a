/** The list of webhook endpoints with their states and figures. */
import { Button, Code } from '@mantine/core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { WebhookEntry, WebhookSecret } from '../../../src/operations/webhooks.ts';
import { path } from '../api/client';
import { ListFilters, useListFilters } from '../parts/list-filters';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { CreateWebhookDialog } from '../webhooks/create-dialog';
import { useWebhookFigures, useWebhooks } from '../webhooks/queries';
import { SigningSecretDialog } from '../webhooks/secret-dialog';
import { WebhookTable } from '../webhooks/webhook-table';

const STATE_OPTIONS = [
  { value: 'enabled', label: 'Enabled' },
  { value: 'failing', label: 'Failing' },
  { value: 'disabled', label: 'Disabled' },
];

type OpenDialog = { readonly kind: 'create' } | { readonly kind: 'created'; readonly webhookSecret: WebhookSecret };

export function WebhooksPage() {
  const [, navigate] = useLocation();
  const webhooks = useWebhooks();
  const figures = useWebhookFigures();
  const { searchText, state } = useListFilters();
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const figuresById = figures.data === undefined ? undefined : new Map(figures.data.map((entry) => [entry.id, entry]));
  const allWebhooks = webhooks.data ?? [];
  const hasState = ({ id, status }: WebhookEntry) => {
    const isFailing = status === 'enabled' && (figuresById?.get(id)?.failingSince ?? null) !== null;
    return state === '' || (state === 'failing' ? isFailing : status === state);
  };
  const shownWebhooks = allWebhooks.filter(
    (webhook) =>
      hasState(webhook) &&
      [webhook.id, webhook.url, webhook.name ?? '', webhook.account ?? ''].some((text) =>
        text.toLowerCase().includes(searchText),
      ),
  );
  return (
    <>
      <PageHead title="Webhooks">
        <Button onClick={() => setDialog({ kind: 'create' })}>Create endpoint</Button>
      </PageHead>
      {webhooks.isPending ? <Loading /> : null}
      {webhooks.isError ? <ErrorAlert error={webhooks.error} retry={webhooks.refetch} /> : null}
      {figures.isError ? <ErrorAlert error={figures.error} retry={figures.refetch} /> : null}
      {webhooks.isSuccess && allWebhooks.length === 0 ? (
        <EmptyState title="No endpoints">
          An endpoint receives the outcome of each message as a signed request to your application. Create an endpoint
          here, or with <Code>postrider webhook create https://app.example.com/webhooks</Code>
        </EmptyState>
      ) : null}
      {allWebhooks.length === 0 ? null : (
        <>
          <ListFilters
            label="Filter by URL, name or account"
            states={STATE_OPTIONS}
            entryNoun="endpoint"
            shownCount={shownWebhooks.length}
            totalCount={allWebhooks.length}
          />
          {shownWebhooks.length === 0 ? (
            <EmptyState title="No endpoint matches" />
          ) : (
            <WebhookTable webhooks={shownWebhooks} figures={figuresById} />
          )}
        </>
      )}
      {dialog?.kind === 'create' ? (
        <CreateWebhookDialog
          onCreated={(webhookSecret) => setDialog({ kind: 'created', webhookSecret })}
          onClose={() => setDialog(null)}
        />
      ) : null}
      {dialog?.kind === 'created' ? (
        <SigningSecretDialog
          webhookSecret={dialog.webhookSecret}
          previousSecretText={null}
          onStored={() => navigate(path`/webhooks/${dialog.webhookSecret.id}`)}
        />
      ) : null}
    </>
  );
}
