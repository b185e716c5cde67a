/** Sends a test to an endpoint and shows the response. */
import { Alert, Button, Group, Loader, Modal, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { DeliveryEntry, WebhookEntry } from '../../../src/operations/webhooks.ts';
import { path, post } from '../api/client';
import { ErrorAlert } from '../parts/page-states';
import { AttemptDetails } from './attempts';
import { useFirstAttempt } from './queries';

export function TestDialog({ webhook, onClose }: { readonly webhook: WebhookEntry; readonly onClose: () => void }) {
  const queryClient = useQueryClient();
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => post<DeliveryEntry>(path`/webhooks/${webhook.id}/test`),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['webhooks'] }),
  });
  // React runs effects twice in strict mode, but the test must be sent only once.
  const hasSentTest = useRef(false);
  useEffect(() => {
    if (hasSentTest.current) return;
    hasSentTest.current = true;
    mutate();
  }, [mutate]);
  const deliveryQuery = useFirstAttempt(webhook.id, data?.id ?? null);
  const attempt = deliveryQuery.data?.attempts[0];
  return (
    <Modal opened onClose={onClose} title="Test" centered size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <Text className="wrap">A signed event of the type webhook.test is sent once to {webhook.url}</Text>
        <div role="status">
          {error !== null ? (
            <ErrorAlert error={error} />
          ) : deliveryQuery.isError ? (
            <ErrorAlert error={deliveryQuery.error} retry={deliveryQuery.refetch} />
          ) : attempt === undefined ? (
            <Group gap="sm">
              <Loader size="sm" aria-hidden />
              <Text>Waiting for the response for up to 15 s.</Text>
            </Group>
          ) : (
            <Stack gap="sm">
              <Alert variant="outline" color={attempt.error === null ? 'green' : 'red'} role="note" p="sm">
                {attempt.error === null
                  ? 'The endpoint accepted the test.'
                  : 'The test failed. The service does not send it again.'}
              </Alert>
              <AttemptDetails attempt={attempt} />
            </Stack>
          )}
        </div>
        <Group justify="flex-end">
          <Button variant="default" onClick={() => mutate()} loading={isPending} disabled={attempt === undefined}>
            Test again
          </Button>
          <Button onClick={onClose}>Close</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
