/** Revokes a key or a token after a confirmation. */
import { Stack, Text } from '@mantine/core';
import type { Topic } from '../../../src/model/audit.ts';
import { post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { RelativeTime } from '../parts/relative-time';
import type { Credential } from './credential-list';

interface RevokeDialogProps {
  readonly noun: 'key' | 'token';
  readonly credential: Credential;
  /** The path of the operation that revokes the credential. */
  readonly apiPath: string;
  readonly topic: Topic;
  /** The effect of the revocation. */
  readonly consequence: string;
  readonly onClose: () => void;
}

export function RevokeDialog({ noun, credential, apiPath, topic, consequence, onClose }: RevokeDialogProps) {
  const { name, prefix, lastUsed } = credential;
  const revoke = useApiMutation(
    () => post(apiPath),
    [topic],
    () => `Revoked ${name} (${prefix}…).`,
  );
  return (
    <ConfirmDialog
      opened
      title={`Revoke ${name} (${prefix}…)?`}
      action={`Revoke ${noun}`}
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Stack>
        <Text>
          {consequence} You cannot restore a revoked {noun}.
        </Text>
        <Text>
          {lastUsed === null ? (
            `The ${noun} has never been used.`
          ) : (
            <>
              The {noun} was last used <RelativeTime at={lastUsed} />.
            </>
          )}
        </Text>
      </Stack>
    </ConfirmDialog>
  );
}
